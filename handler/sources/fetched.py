"""What every source returns: bytes in a file of ours, and the name they had where they came from."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from handler.errors import DocumentTooLarge

CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fetched:
    """A file as it arrived, before unpacking."""

    path: Path
    name: str | None = None


def too_large(limit: int) -> DocumentTooLarge:
    """The error for a document over `limit` bytes."""
    return DocumentTooLarge(f"the document is larger than {limit} bytes (MAX_DOCUMENT_BYTES)", limit=limit)


def write_limited(chunks: Iterable[bytes], path: Path, limit: int) -> int:
    """Write `chunks` to `path`; returns the bytes written. Raises `DocumentTooLarge` past `limit` bytes."""
    written = 0
    with path.open("wb") as file:
        for chunk in chunks:
            written += len(chunk)
            if written > limit:
                raise too_large(limit)
            file.write(chunk)
    return written
