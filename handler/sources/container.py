"""ZIP and gzip files that hold exactly one document. Everything else about archives is refused."""

import gzip
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from handler.errors import ArchiveRefused, UnsupportedFormat
from handler.sources.fetched import CHUNK_BYTES, Fetched, write_limited
from handler.sources.sniffing import HEAD_BYTES, is_gzip, is_zip

ENTRIES_LIMIT = 100
DIRECTORY_BYTES_LIMIT = 64 * 1024
"""Size of the central directory; 100 entries with long names stay below it."""
RATIO_LIMIT = 200
"""Unpacked to packed. A blank page of bitonal PNG reaches about 100."""
RATIO_FREE_BYTES = 64 * 1024 * 1024
"""Below this an unpacked document may have any ratio: it cannot hurt."""

_END_RECORD = b"PK\x05\x06"
_END_RECORD_BYTES = 22
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_COMMENT_LIMIT = 65535
_ENCRYPTED_FLAG = 0x1
_OFFICE_NAMES = ("[Content_Types].xml", "mimetype", "META-INF/container.xml")


def unpack(fetched: Fetched, path: Path, limit: int) -> Fetched:
    """The document inside `fetched`, written to `path`; or `fetched` itself when it is no container."""
    head = read_head(fetched.path)
    if is_zip(head):
        unpacked = _unzip(fetched.path, path, limit)
    elif is_gzip(head):
        unpacked = _gunzip(fetched, path, limit)
    else:
        return fetched
    inner = read_head(unpacked.path)
    if is_zip(inner) or is_gzip(inner):
        raise ArchiveRefused("the archive holds another archive; it must hold the document itself")
    return unpacked


def read_head(path: Path) -> bytes:
    """The first bytes of a file, as many as sniffing needs."""
    with path.open("rb") as file:
        return file.read(HEAD_BYTES)


def _gunzip(fetched: Fetched, path: Path, limit: int) -> Fetched:
    name = fetched.name.removesuffix(".gz") if fetched.name else None
    try:
        with gzip.open(fetched.path, "rb") as stream:
            write_limited(_bounded(stream, fetched.path.stat().st_size), path, limit)
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(error) from None
    return Fetched(path, name)


def _unzip(archive: Path, path: Path, limit: int) -> Fetched:
    _check_directory(archive)
    try:
        with zipfile.ZipFile(archive) as opened:
            member = _only_member(opened)
            with opened.open(member) as stream:
                write_limited(_bounded(stream, max(member.compress_size, 1)), path, limit)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise _damaged(error) from None
    return Fetched(path, member.filename.replace("\\", "/").rsplit("/", 1)[-1])


def _check_directory(archive: Path) -> None:
    """Refuse by the end record alone what would cost memory to list: zipfile holds every entry as an object."""
    with archive.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _COMMENT_LIMIT - _END_RECORD_BYTES - _ZIP64_LOCATOR_BYTES))
        tail = file.read()
    at = tail.rfind(_END_RECORD)
    if at < 0 or len(tail) - at < _END_RECORD_BYTES:
        raise ArchiveRefused("the ZIP file is cut short; upload it again")
    entries, directory_bytes = struct.unpack_from("<HI", tail, at + 10)
    if _ZIP64_LOCATOR in tail[max(0, at - _ZIP64_LOCATOR_BYTES) : at]:
        raise ArchiveRefused("the ZIP file is of the ZIP64 kind, which is not read; send the document itself")
    if entries > ENTRIES_LIMIT or directory_bytes > DIRECTORY_BYTES_LIMIT:
        raise ArchiveRefused(f"the archive lists {entries} files; it must hold exactly one document")


def _only_member(opened: zipfile.ZipFile) -> zipfile.ZipInfo:
    members = [member for member in opened.infolist() if not member.is_dir() and not _clutter(member.filename)]
    if any(member.filename in _OFFICE_NAMES for member in members):
        raise UnsupportedFormat("the document is an Office or e-book file; print it to PDF", looks_like="office")
    if len(members) != 1:
        raise ArchiveRefused(f"the archive holds {len(members)} files; it must hold exactly one document")
    member = members[0]
    if member.flag_bits & _ENCRYPTED_FLAG:
        raise ArchiveRefused("the archive is encrypted; `password` opens PDFs, not archives")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveRefused("the method of the archive is neither stored nor deflate; send the document itself")
    return member


def _clutter(name: str) -> bool:
    parts = name.replace("\\", "/").split("/")
    return parts[0] == "__MACOSX" or parts[-1] in (".DS_Store", "Thumbs.db", "desktop.ini")


def _bounded(stream: IO[bytes] | gzip.GzipFile, packed: int) -> Iterator[bytes]:
    unpacked = 0
    while chunk := stream.read(CHUNK_BYTES):
        unpacked += len(chunk)
        if unpacked > RATIO_FREE_BYTES and unpacked > packed * RATIO_LIMIT:
            raise ArchiveRefused(f"the archive unpacks to over {RATIO_LIMIT} times its size; send the document itself")
        yield chunk


def _damaged(error: Exception) -> ArchiveRefused:
    return ArchiveRefused(f"the archive is damaged ({type(error).__name__}); make it anew, or send the document itself")
