"""The client's settings: from arguments, the environment, or a file. The only reader of the environment."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import platformdirs

from glmocr_runpod.errors import ConfigError

APP = "glmocr-runpod"
RUNPOD_URL = "https://api.runpod.ai/v2"
TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})
_PLAIN = re.compile(r"[!-~]+")
_SEGMENT = re.compile(r"[A-Za-z0-9._-]+")


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Where to send documents and what the client may do. Field names are the variables' names in lower case."""

    runpod_api_key: str = ""
    """Never on a command line, never in a log."""
    runpod_endpoint_id: str = ""
    runpod_api_url: str = RUNPOD_URL
    glmocr_password: str = ""
    """Opens encrypted PDFs given to the command line."""
    glmocr_state_dir: str = ""
    """Where jobs and results are remembered. Default: the user's state directory."""
    glmocr_downsample_oversized: bool = True
    """Let Ghostscript shrink a single page that is over the limit."""
    glmocr_pages_per_job: int = 0
    """Divide documents of more pages than this into parallel jobs; 0: only when size demands it."""
    glmocr_jobs_per_document: int = 8
    """Most jobs of one document at the same time."""
    glmocr_gpu_price_per_hour: float = 0.0
    """For the cost shown by `batch`; 0: show seconds only."""
    bucket_endpoint_url: str = ""
    bucket_name: str = ""
    """The bucket to upload to and fetch results from."""
    bucket_access_key_id: str = ""
    bucket_secret_access_key: str = ""
    bucket_region: str = "auto"
    runpod_volume_id: str = ""
    """The network volume, reached through its S3 interface with the keys below."""
    runpod_volume_endpoint_url: str = ""
    runpod_volume_access_key_id: str = ""
    runpod_volume_secret_access_key: str = ""
    runpod_volume_region: str = "auto"
    """The data centre of the volume."""

    def __repr__(self) -> str:
        """Everything but keys."""
        shown = {n: getattr(self, n) for n in self.__struct_fields__ if not _secret(n) and getattr(self, n)}
        return f"Config({shown})"

    @property
    def base_url(self) -> str:
        """The endpoint's address."""
        return f"{self.api_url}/{self.runpod_endpoint_id}"

    @property
    def api_url(self) -> str:
        """The platform's address in one spelling: jobs are known by it."""
        return self.runpod_api_url.rstrip("/")

    @property
    def state_directory(self) -> Path:
        """Where the ledger lies."""
        given = self.glmocr_state_dir
        return Path(given).expanduser().absolute() if given else platformdirs.user_state_path(APP)

    def require_endpoint(self) -> "Config":
        """Itself, if documents can be sent with it. Raises `ConfigError` naming what is missing or cannot be."""
        missing = [name for name in ("runpod_api_key", "runpod_endpoint_id") if not getattr(self, name)]
        if missing:
            names = " and ".join(name.upper() for name in missing)
            raise ConfigError(f"set {names} in the environment or in {config_file()}")
        # What cannot be sent must not look as if it had been: a broken submission is an ambiguous one.
        if not _PLAIN.fullmatch(self.runpod_api_key):
            raise ConfigError("RUNPOD_API_KEY has blanks or characters that no key has")
        if not _SEGMENT.fullmatch(self.runpod_endpoint_id):
            raise ConfigError(f"RUNPOD_ENDPOINT_ID={self.runpod_endpoint_id!r} is not the id of an endpoint")
        if urlsplit(self.api_url).scheme not in ("http", "https") or not urlsplit(self.api_url).hostname:
            raise ConfigError(f"RUNPOD_API_URL={self.runpod_api_url!r} is not an http(s) address")
        return self


def config_file() -> Path:
    """The user's configuration file, TOML, the same names in lower case."""
    return platformdirs.user_config_path(APP) / "config.toml"


def load(environment: Mapping[str, str] | None = None, file: Path | None = None, **given: object) -> Config:
    """Settings: `given` before the environment before the file. Raises `ConfigError` naming the bad one."""
    environment = os.environ if environment is None else environment
    values: dict[str, object] = dict(_from_file(file or config_file()))
    for name in Config.__struct_fields__:
        text = environment.get(name.upper(), "").strip()
        if text:
            values[name] = text
    values |= {name: value for name, value in given.items() if value is not None}
    return msgspec.convert({name: _typed(name, value) for name, value in values.items()}, Config)


def _from_file(path: Path) -> dict[str, object]:
    try:
        values = tomllib.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    unknown = values.keys() - set(Config.__struct_fields__)
    if unknown:
        raise ConfigError(f"{path}: unknown setting {min(unknown)}")
    return values


def _typed(name: str, value: object) -> object:
    kind = Config.__annotations__[name]
    try:
        if kind is bool and isinstance(value, str):
            return _switch(value)
        return msgspec.convert(value, kind, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        shown = "***" if _secret(name) else repr(value)
        raise ConfigError(f"{name.upper()}={shown}: {error}") from error


def _secret(name: str) -> bool:
    return "key" in name or "password" in name


def _switch(value: str) -> bool:
    if value.lower() in TRUE | FALSE:
        return value.lower() in TRUE
    raise ValueError("use on or off")
