"""`volume_path`: a regular file under the network volume, reached without following any link.

Every folder is opened relative to the one before it with O_NOFOLLOW and the file is checked after it is open, so
nothing that is swapped in between leads elsewhere.
"""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from handler.errors import PathRefused, SourceNotFound, SourceUnavailable, WorkerError
from handler.sources.fetched import CHUNK_BYTES, Fetched, too_large, write_limited

OWN_FOLDERS = frozenset({"glmocr", "huggingface-cache"})
"""Top-level folders of the volume that hold results, checkpoints and models: never documents."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NOT_FOUND = frozenset({errno.ENOENT, errno.ENAMETOOLONG})
_REFUSED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EACCES, errno.EPERM})


def copy_from(root: Path, given: str, path: Path, limit: int) -> Fetched:
    """Copy the file `given` (relative to `root`) into `path`."""
    parts = _parts(given)
    descriptor = _open_beneath(root, parts)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise PathRefused("volume_path does not name a regular file")
        if status.st_size > limit:
            raise too_large(limit)
        write_limited(_chunks(descriptor), path, limit)
    finally:
        os.close(descriptor)
    return Fetched(path, parts[-1])


def own(parts: list[str]) -> bool:
    """Whether the first part is a folder of ours, under any spelling a case-blind file system would accept."""
    return parts[0].casefold().rstrip(". ") in OWN_FOLDERS


def _parts(given: str) -> list[str]:
    if "\0" in given or given.startswith("/"):
        raise PathRefused("volume_path must be relative to the network volume")
    parts = [part for part in given.split("/") if part not in ("", ".")]
    if not parts or ".." in parts:
        raise PathRefused("volume_path must name a file and must not contain '..'")
    if own(parts):
        raise PathRefused(f"{parts[0]}/ on the volume is not readable as a document")
    return parts


def _open_beneath(root: Path, parts: list[str]) -> int:
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        raise SourceNotFound("no network volume is mounted (RUNPOD_VOLUME_PATH)") from None
    try:
        for part in parts[:-1]:
            inner = os.open(part, _DIRECTORY, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _FILE, dir_fd=folder)
    except (OSError, UnicodeEncodeError) as error:
        raise _refusal(error) from None
    finally:
        os.close(folder)


def _refusal(error: OSError | UnicodeEncodeError) -> WorkerError:
    if isinstance(error, UnicodeEncodeError) or error.errno in _REFUSED:
        return PathRefused("volume_path leads through a link, or to something that is not a readable file")
    if error.errno in _NOT_FOUND:
        return SourceNotFound("there is no such file on the volume")
    return SourceUnavailable(f"the volume cannot be read: {error.strerror}")


def _chunks(descriptor: int) -> Iterator[bytes]:
    while chunk := os.read(descriptor, CHUNK_BYTES):
        yield chunk
