"""The document a caller gives: a path, bytes, or an address the worker fetches."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

from glmocr_runpod.errors import SourceError
from glmocr_runpod.identity import sha256
from glmocr_runpod.packing import unpacked

Given: TypeAlias = str | Path | bytes


@dataclass(frozen=True, slots=True)
class Source:
    """A document to read. Either `data` is its bytes, or `url` its address."""

    name: str
    digest: str
    """Of the bytes; of the address where the client never sees the bytes."""
    data: bytes | None = field(default=None, repr=False)
    url: str | None = field(default=None, repr=False)


def read_source(given: Given, name: str | None = None) -> Source:
    """The document behind `given`, out of its archive. Raises `SourceError` when it cannot be read or is empty."""
    if isinstance(given, bytes):
        return _of_bytes(given, name or "document")
    if isinstance(given, str) and given.startswith(("http://", "https://")):
        path = Path(urlsplit(given).path)
        return Source(name or path.name or "document", sha256(given.encode()), url=given)
    path = Path(given)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error
    return _of_bytes(data, name or path.name)


def _of_bytes(data: bytes, name: str) -> Source:
    if not data:
        raise SourceError(f"{name} has no bytes")
    document = unpacked(data)
    return Source(name, sha256(document), data=document)
