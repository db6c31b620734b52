"""Every setting, read from the environment once. The only reader of the environment.

`docs/operations.md` lists them from here; a bad value ends the boot and names the variable.
"""

import os
import shlex
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from handler.engine.api import EngineName
from handler.errors import SettingsError
from handler.layout.names import LayoutName
from handler.logs import LogLevel
from handler.redaction import Redactor

Network: TypeAlias = IPv4Network | IPv6Network


def _listed(value: object) -> object:
    return [part.strip().lower() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _http_address(value: str | None) -> str | None:
    parts = urlsplit(value or "http://unset")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an address like http://host:8000")
    return value


def _shell_words(value: str) -> str:
    try:
        shlex.split(value)
    except ValueError as error:
        raise ValueError(f"must be words as a shell takes them: {error}") from None
    return value


CommaSeparated = (NoDecode, BeforeValidator(_listed))


class Settings(BaseSettings):
    """The worker's settings. Field names are the variables' names in lower case."""

    model_config = SettingsConfigDict(
        frozen=True, extra="ignore", env_ignore_empty=True, use_attribute_docstrings=True, env_file=None
    )

    glmocr_engine: EngineName = EngineName.SGLANG
    """Which text engine reads the regions."""
    glmocr_layout: LayoutName | None = None
    """Which layout model finds them. Default: `pp_doclayout_v3`; `rapidocr`: `cdla`; `external`: must be named."""
    engine_url: Annotated[str | None, AfterValidator(_http_address)] = None
    """`external`: base address of an OpenAI-compatible server."""
    engine_api_key: SecretStr | None = None
    """`external`: its bearer key."""
    engine_model: str = "glm-ocr"
    """The model name sent with every request, and the one our own server serves under."""
    model_path: Path | None = None
    """Directory of GLM-OCR's weights. Default: resolved through models.manifest.yaml."""
    layout_model_path: Path | None = None
    """Directory of PP-DocLayoutV3's weights. Default: resolved through models.manifest.yaml."""
    models_path: Path = Path("/models")
    """Where the image keeps weights, and where they are downloaded to when there is no network volume."""
    sglang_port: Annotated[int, Field(ge=1024, le=65535)] = 5002
    """Loopback port of the engine; the next free one is taken when it is held."""
    sglang_profile: str | None = None
    """Name of a profile in handler/engine/profiles.yaml. Default: chosen by GPU."""
    sglang_extra_args: Annotated[str, AfterValidator(_shell_words)] = ""
    """Appended to SGLang's command line, shell-quoted; the last of two equal flags wins."""
    sglang_python: str = "python3"
    """The interpreter that has SGLang or transformers: the base image's own, found on the PATH."""
    cuda_visible_devices: str | None = None
    """Which GPUs may be used: indices or UUIDs. Default: all that are visible."""
    layout_device: Annotated[str | None, Field(pattern=r"^(cpu|cuda(:\d+)?)$")] = None
    """Where PP-DocLayoutV3 runs: `cpu`, `cuda` or `cuda:N`. Default: the GPU if there is one."""
    layout_batch_size: Annotated[int | None, Field(ge=1, le=64)] = None
    """Pages in one run of PP-DocLayoutV3. Default: 8 on a GPU, 1 on a CPU."""
    engine_start_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 900.0
    """How long the engine may take to become ready, seconds."""
    engine_request_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 300.0
    """How long one region may take in the engine, retries excluded, seconds."""

    ocr_max_tokens: Annotated[int, Field(ge=16, le=131072)] = 32768
    """Ceiling of tokens per region, always clamped to what the context leaves."""
    regions_in_flight: Annotated[int | None, Field(ge=1, le=4096)] = None
    """Requests in flight in the whole process. Default: 1.5 x the engine's slots."""
    glmocr_pipeline_max_workers: Annotated[int | None, Field(ge=1, le=1024)] = None
    """Pages in flight per document. Default: automatic, bounded by memory."""
    ocr_worker_concurrency: Annotated[int, Field(ge=1, le=256)] = 8
    """Jobs at once per worker."""
    page_memory_mb: Annotated[int, Field(ge=32, le=65536)] = 96
    """Rendered pages held at once in the whole process, MB."""

    max_pages: Annotated[int, Field(ge=1)] = 2000
    """Pages per job."""
    max_document_bytes: Annotated[int, Field(ge=1)] = 512 * 1024 * 1024
    """Bytes per document, before and after unpacking."""
    max_page_pixels: Annotated[int, Field(ge=1_000_000)] = 24_000_000
    """Pixels of one rendered page; larger pages are rendered at a lower resolution."""
    render_processes: Annotated[int, Field(ge=1, le=64)] = 2
    """Processes that render and encode pages."""
    render_timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    """How long one page may render, seconds."""
    render_memory_mb: Annotated[int, Field(ge=256)] = 2048
    """Address space one render process may use above its start, MB."""

    download_timeout_s: Annotated[float, Field(gt=0, le=3600)] = 120.0
    """How long fetching one document may take, redirects included, seconds."""
    url_allowed_hosts: Annotated[tuple[str, ...], *CommaSeparated] = ()
    """Comma-separated; when set, `file_url` may name only these hosts."""
    url_private_networks: Annotated[tuple[Network, ...], *CommaSeparated] = ()
    """Comma-separated networks (`10.0.0.0/8`) that `file_url` may reach although they are not public."""

    runpod_volume_path: Path = Path("/runpod-volume")
    """Where the network volume is mounted."""
    bucket_endpoint_url: str | None = None
    """S3 endpoint of the result bucket."""
    bucket_region: str = "auto"
    """Region that requests to the bucket are signed for."""
    bucket_name: str | None = None
    """Result bucket, and the only one `s3_uri` may name."""
    bucket_access_key_id: SecretStr | None = None
    """S3 access key id."""
    bucket_secret_access_key: SecretStr | None = None
    """S3 secret key."""

    checkpoint_hours: Annotated[float, Field(gt=0)] = 72.0
    """How long finished pages stay on the volume, hours."""
    checkpoint_max_mb: Annotated[int, Field(ge=1)] = 10_240
    """Finished pages on the volume altogether, MB; the oldest documents go first."""
    result_hours: Annotated[float, Field(gt=0)] = 168.0
    """How long results stay on the volume, hours."""
    result_max_mb: Annotated[int, Field(ge=1)] = 20_480
    """Results on the volume altogether, MB; the oldest go first."""

    boot_golden_page: bool = True
    """`on`/`off`: read the bundled page through the whole chain before taking jobs."""
    glmocr_allow_untested: bool = False
    """Boot with a glmocr version the patches were not tested against."""
    shutdown_grace_s: Annotated[float, Field(ge=0, le=600)] = 20.0
    """How long running jobs may finish after SIGTERM, seconds."""
    log_level: LogLevel = LogLevel.INFO
    """`debug`, `info`, `warning`, `error`."""

    @classmethod
    def from_env(cls) -> "Settings":
        """Read the environment. Raises `SettingsError` naming every bad variable and what it accepts."""
        try:
            return cls()
        except ValidationError as error:
            raise SettingsError("; ".join(_complaint(e["loc"], e["input"], e["msg"]) for e in error.errors())) from None

    @property
    def layout(self) -> LayoutName:
        """The layout model, with the engine's default filled in."""
        if self.glmocr_layout:
            return self.glmocr_layout
        if self.glmocr_engine is EngineName.RAPIDOCR:
            return LayoutName.CDLA
        if self.glmocr_engine is EngineName.EXTERNAL:
            raise SettingsError(
                "GLMOCR_LAYOUT must be named with GLMOCR_ENGINE=external: pp_doclayout_v3, cdla or whole_page"
            )
        return LayoutName.PP_DOCLAYOUT_V3

    def __repr__(self) -> str:
        return f"Settings({self.public()})"

    def __str__(self) -> str:
        return repr(self)

    def public(self) -> dict[str, str]:
        """All settings as text for `debug`, secrets left out, also those inside addresses and command lines."""
        secret = {name for name, value in self if isinstance(value, SecretStr)}
        redact = Redactor()
        return {name.upper(): redact(str(value)) for name, value in self if name not in secret and value is not None}


SECRET_VARIABLES = frozenset(
    {
        "RUNPOD_AI_API_KEY",
        "RUNPOD_API_KEY",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "HF_TOKEN",
    }
    | {
        name.upper()
        for name, value in Settings.model_fields.items()
        if SecretStr in (value.annotation, *get_args(value.annotation))
    }
)


def secret_values() -> tuple[str, ...]:
    """Everybody's keys in our environment, so that they can be kept out of what is written."""
    return tuple(value for name, value in os.environ.items() if name.upper() in SECRET_VARIABLES and value)


def child_environment() -> dict[str, str]:
    """The environment for a child process: ours without anybody's keys."""
    return {name: value for name, value in os.environ.items() if name.upper() not in SECRET_VARIABLES}


def forbid_hub() -> None:
    """Keep model libraries in this process from fetching anything: what is not on disk is missing."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def secret_from(name: str) -> str:
    """The value of the variable a command line names for its key. Raises `SettingsError` when it is not set."""
    value = os.environ.get(name)
    if not value:
        raise SettingsError(f"{name} is not set or empty, but it was named as the variable that holds the key")
    return value


def _complaint(loc: tuple[int | str, ...], value: object, message: str) -> str:
    name = str(loc[0]).upper() if loc else "environment"
    shown = "***" if "KEY" in name else Redactor()(repr(value))
    return f"{name}={shown}: {message}"
