"""What an endpoint should be, what it is, and the difference. No network here.

A template is never changed: its name carries a hash of its content, a new content is a new template, and the endpoint
is moved to it. The template remembers the one before in its readme, which is what a rollback goes by.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

PREVIOUS = re.compile(r"^previous: (\S+)$", re.MULTILINE)
Fields = Mapping[str, Any]


class PlanError(Exception):
    """The file, or what it asks for, is not valid."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Workers(_Section):
    """How many there may be."""

    min: Annotated[int, Field(ge=0)]
    max: Annotated[int, Field(ge=1)]


class Scaling(_Section):
    """When one more is started."""

    type: Literal["QUEUE_DELAY", "REQUEST_COUNT"]
    value: Annotated[int, Field(ge=1)]


class Target(_Section):
    """`deploy/endpoint.yaml`."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,60}$")]
    image: Annotated[str | None, Field(pattern=r"^[a-z0-9./_-]+@sha256:[0-9a-f]{64}$")]
    registry_credential: str | None
    gpu_types: Annotated[tuple[str, ...], Field(min_length=1)]
    cuda_versions: tuple[Annotated[str, Field(pattern=r"^\d+\.\d+$")], ...]
    workers: Workers
    idle_timeout_s: Annotated[int, Field(ge=1, le=3600)]
    execution_timeout_s: Annotated[int, Field(ge=60)]
    scaling: Scaling
    flashboot: bool
    container_disk_gb: Annotated[int, Field(ge=1)]
    network_volume: str | None
    data_centres: tuple[str, ...]
    env: dict[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One field that differs."""

    field: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.field}: {json.dumps(self.old)} -> {json.dumps(self.new)}"


def read_target(path: Path, image: str | None) -> Target:
    """The file, with `image` in place of its own. Raises `PlanError`."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Target.model_validate(data | ({"image": image} if image else {}))
    except (OSError, yaml.YAMLError, ValidationError, TypeError) as error:
        raise PlanError(f"{path}: {error}") from error


def template_fields(target: Target, credential_id: str | None) -> dict[str, Any]:
    """The template this target needs, its name made from its content. Raises `PlanError` without an image."""
    if target.image is None:
        raise PlanError("no image named: give --image, by digest")
    fields = {
        "imageName": target.image,
        "containerDiskInGb": target.container_disk_gb,
        "env": target.env,
        "isServerless": True,
        "volumeInGb": 0,
    }
    if credential_id:
        fields["containerRegistryAuthId"] = credential_id
    content = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    return {"name": f"{target.name}-{content[:12]}", **fields}


def endpoint_fields(target: Target, template_id: str | None, volume_id: str | None) -> dict[str, Any]:
    """The endpoint this target needs."""
    return {
        "templateId": template_id,
        "computeType": "GPU",
        "gpuCount": 1,
        "gpuTypeIds": list(target.gpu_types),
        "allowedCudaVersions": list(target.cuda_versions),
        "workersMin": target.workers.min,
        "workersMax": target.workers.max,
        "idleTimeout": target.idle_timeout_s,
        "executionTimeoutMs": target.execution_timeout_s * 1000,
        "scalerType": target.scaling.type,
        "scalerValue": target.scaling.value,
        "flashboot": target.flashboot,
        "networkVolumeId": volume_id,
        "dataCenterIds": list(target.data_centres),
    }


def differences(wanted: Fields, actual: Fields) -> list[Change]:
    """What differs, over the fields that RunPod tells."""
    return [
        Change(field, actual[field], value)
        for field, value in wanted.items()
        if field in actual and _plain(actual[field]) != _plain(value)
    ]


def _plain(value: Any) -> Any:
    """Lists come back as comma-separated text here and there, in any order, and empty things as null."""
    if isinstance(value, str) and "," in value:
        value = value.split(",")
    if isinstance(value, list):
        return sorted(map(str, value)) or None
    return None if value in ("", {}) else value


def readme(previous: str | None) -> str:
    """What the template says about itself."""
    return "Made by scripts/deploy.\n" + (f"previous: {previous}\n" if previous else "")


def previous_of(template: Fields) -> str | None:
    """The id of the template before this one."""
    found = PREVIOUS.search(template.get("readme") or "")
    return found.group(1) if found else None
