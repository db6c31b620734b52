"""The list of models this worker may load: `models.manifest.yaml`, read and checked."""

from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from handler.errors import ModelError

MANIFEST_PATH = Path(__file__).resolve().parents[2] / "models.manifest.yaml"


class Place(StrEnum):
    """Where a model's files may come from."""

    EXPLICIT = "explicit"
    IMAGE = "image"
    RUNPOD_CACHE = "runpod_cache"
    VOLUME = "volume"
    DOWNLOAD = "download"


class Knowledge(StrEnum):
    """How a file's hash is known."""

    CONFIRMED = "confirmed"
    PUBLIC_AGREEMENT = "public_agreement"
    UNCONFIRMED = "unconfirmed"


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ModelFile(_Entry):
    """One file of a model."""

    path: str
    """Relative to the model's directory."""
    size: Annotated[int | None, Field(ge=0)] = None
    """Bytes; None while unconfirmed."""
    sha256: Annotated[str | None, Field(pattern=r"^[0-9a-f]{64}$")] = None
    """None while unconfirmed."""
    known: Knowledge
    sources: Annotated[int | None, Field(ge=1)] = None
    """How many independent public sources agree."""
    note: str | None = None
    """What is special about it."""

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError("must stay inside the model's directory")
        return path

    @model_validator(mode="after")
    def _hash_unless_unconfirmed(self) -> Self:
        if (self.sha256 is None) != (self.known is Knowledge.UNCONFIRMED):
            raise ValueError(f"{self.path}: a hash and `known: unconfirmed` exclude each other, and one is needed")
        if self.sha256 is not None and self.size is None:
            raise ValueError(f"{self.path}: a hash needs its size")
        return self


class ModelEntry(_Entry):
    """One model at one revision."""

    repo: Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]
    revision: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    licence: str
    setting: str
    """The variable that names an explicit directory."""
    places: tuple[Place, ...]
    files: Annotated[tuple[ModelFile, ...], Field(min_length=1)]

    @property
    def size(self) -> int:
        """Bytes of all files whose size is known."""
        return sum(file.size or 0 for file in self.files)

    @property
    def unconfirmed(self) -> tuple[str, ...]:
        """The files whose bytes nobody has vouched for."""
        return tuple(file.path for file in self.files if file.known is Knowledge.UNCONFIRMED)


class Manifest(_Entry):
    """All models."""

    version: Literal[1]
    models: dict[str, ModelEntry]

    def model(self, name: str) -> ModelEntry:
        """The entry of that name. Raises `ModelError` if there is none."""
        if name not in self.models:
            raise ModelError(f"models.manifest.yaml has no model {name!r}, only {', '.join(sorted(self.models))}")
        return self.models[name]


def load_manifest(path: Path = MANIFEST_PATH) -> Manifest:
    """Read the manifest. Raises `ModelError` where it is missing or not valid."""
    try:
        return Manifest.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise ModelError(f"{path.name} cannot be used: {error}") from error
