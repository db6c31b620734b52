"""Places outside the platform's own delivery where results and artifacts can be left."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from handler.errors import StorageUnavailable
from handler.schema import Delivery
from handler.volume import write_whole

PRESIGNED_S = 3600
KEY_PREFIX = "glmocr/results"
_SAFE_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stored:
    """Where something lies: `key` within the storage, `url` when it can be fetched without credentials for a while."""

    key: str
    url: str | None = None


class Storage(Protocol):
    """A place for bytes under names of ours."""

    @property
    def delivery(self) -> Delivery:
        """How an envelope calls this place."""

    async def put(self, name: str, data: bytes, media_type: str) -> Stored:
        """Store whole or not at all. `name` is `CONTENT_KEY/FILE`. Raises `StorageUnavailable`."""


class VolumeStorage:
    """`glmocr/results` on the network volume. The key is the path below the mount, so the volume's S3 API finds it."""

    delivery = Delivery.VOLUME

    def __init__(self, results: Path, root: Path) -> None:
        self._results = results
        self._root = root

    async def put(self, name: str, data: bytes, media_type: str) -> Stored:
        """Stage and rename."""
        target = self._results.joinpath(*_parts(name))
        try:
            await asyncio.to_thread(_write, target, data)
        except OSError as error:
            raise StorageUnavailable(f"the volume refused the result: {error.strerror}") from error
        return Stored(target.relative_to(self._root).as_posix())


class S3Storage:
    """The configured bucket."""

    delivery = Delivery.S3

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    async def put(self, name: str, data: bytes, media_type: str) -> Stored:
        """Upload, and sign an address that works for an hour."""
        key = "/".join((KEY_PREFIX, *_parts(name)))
        await self._call(
            lambda: self._client.put_object(Bucket=self._bucket, Key=key, Body=data, ContentType=media_type)
        )
        address: str = await self._call(
            lambda: self._client.generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket, "Key": key}, ExpiresIn=PRESIGNED_S
            )
        )
        return Stored(key, address)

    async def _call(self, call: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(call)
        except (BotoCoreError, ClientError) as error:
            raise StorageUnavailable(f"the bucket refused the result: {_why(error)}") from error


def _why(error: BotoCoreError | ClientError) -> str:
    """The store's own code where it gave one, such as AccessDenied; never its message, which may quote keys."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code") or "ClientError")
    return type(error).__name__


def _parts(name: str) -> list[str]:
    parts = name.split("/")
    if not all(_SAFE_NAME.fullmatch(part) and part.strip(".") for part in parts):
        raise ValueError(f"not a storage name: {name!r}")
    return parts


def _write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(target, data)
