"""How large a document is on its way, packed and unpacked."""

import gzip
import io
import zipfile
import zlib
from typing import IO

ROOM = 4096
"""Bytes of a request kept free for its options."""


def inline_size(data: bytes) -> int:
    """Bytes of base64."""
    return -(-len(data) // 3) * 4


UNPACKED_LIMIT = 1024 * 1024 * 1024
"""Bytes; a larger document stays packed."""
GZIP_WBITS = 16 + zlib.MAX_WBITS
GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGIC = b"PK\x03\x04"
_CLUTTER = ("__MACOSX/", ".DS_Store", "Thumbs.db", "desktop.ini")


def is_archive(data: bytes) -> bool:
    """Whether the worker would unpack it; it refuses an archive within an archive."""
    return data.startswith((GZIP_MAGIC, ZIP_MAGIC))


def unpacked(data: bytes) -> bytes:
    """The one document inside a ZIP or gzip file, as the worker would find it; anything else as it is.

    What the worker would refuse stays as it is, too: it says why.
    """
    try:
        if data.startswith(GZIP_MAGIC):
            with gzip.open(io.BytesIO(data)) as stream:
                return _document(stream) or data
        if data.startswith(ZIP_MAGIC):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = [m for m in archive.infolist() if not (m.is_dir() or m.filename.endswith(_CLUTTER))]
                members = [m for m in members if not m.filename.startswith(_CLUTTER)]
                if len(members) == 1:
                    with archive.open(members[0]) as stream:
                        return _document(stream) or data
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError):
        return data
    return data


def _document(stream: IO[bytes] | gzip.GzipFile) -> bytes | None:
    content = stream.read(UNPACKED_LIMIT + 1)
    return None if not content or len(content) > UNPACKED_LIMIT or is_archive(content) else content


def gzipped(data: bytes) -> bytes:
    """The same bytes each time, whichever Python: the `gzip` module's header changed with 3.13."""
    return zlib.compress(data, level=9, wbits=GZIP_WBITS)
