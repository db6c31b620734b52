"""From a job's source to a document in a file of ours: fetch, unpack, sniff, hash."""

import asyncio
import errno
import hashlib
import shutil
from pathlib import Path

from handler.documents.page import StagedDocument
from handler.errors import EmptyFile, NoSource, SeveralSources, StorageUnavailable
from handler.schema import SOURCE_KEYS, JobInput
from handler.settings import Settings
from handler.sources import container, inline, s3, url, volume
from handler.sources.fetched import CHUNK_BYTES, Fetched
from handler.sources.sniffing import sniff

FILENAME_LIMIT = 255
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})


async def stage(job: JobInput, settings: Settings, folder: Path) -> StagedDocument:
    """Bring the job's document into `folder`, which must exist and be empty, and say what it is.

    `sha256` and `size` are those of the bytes after unpacking, before junk in front of a PDF header is cut off.
    Raises the `InputError` that fits, `SourceUnavailable`, or `StorageUnavailable` when the disk is full.
    """
    check_source(job)
    try:
        fetched = await _fetch(job, settings, folder / "fetched")
        return await asyncio.to_thread(_prepare, fetched, job, settings.max_document_bytes, folder)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise StorageUnavailable("the worker's disk is full") from error
        raise


def check_source(job: JobInput) -> None:
    """Raise unless the job names exactly one document."""
    given = [key for key in SOURCE_KEYS if getattr(job, key) is not None]
    if not given:
        raise NoSource
    if len(given) > 1:
        raise SeveralSources(f"the input names more than one document ({', '.join(given)}); give exactly one")


async def _fetch(job: JobInput, settings: Settings, path: Path) -> Fetched:
    limit = settings.max_document_bytes
    if job.file_base64 is not None:
        return await asyncio.to_thread(inline.decode_to, job.file_base64, path, limit)
    if job.file_url is not None:
        return await url.download(job.file_url, settings, path)
    if job.volume_path is not None:
        return await asyncio.to_thread(volume.copy_from, settings.runpod_volume_path, job.volume_path, path, limit)
    assert job.s3_uri is not None
    return await asyncio.to_thread(s3.download, job.s3_uri, settings, path)


def _prepare(fetched: Fetched, job: JobInput, limit: int, folder: Path) -> StagedDocument:
    _refuse_empty(fetched.path)
    document = container.unpack(fetched, folder / "unpacked", limit)
    if document is not fetched:
        fetched.path.unlink()
    size = _refuse_empty(document.path)
    sniffed = sniff(container.read_head(document.path))
    digest = _sha256(document.path)
    path = _without_junk(document.path, sniffed.junk, folder / "document")
    return StagedDocument(path, sniffed.kind, digest, size, _filename(job.filename or document.name), job.password)


def _refuse_empty(path: Path) -> int:
    size = path.stat().st_size
    if size == 0:
        raise EmptyFile
    return size


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _without_junk(path: Path, junk: int, target: Path) -> Path:
    if junk == 0:
        return path.rename(target)
    with path.open("rb") as source, target.open("wb") as cut:
        source.seek(junk)
        shutil.copyfileobj(source, cut, CHUNK_BYTES)
    path.unlink()
    return target


def _filename(name: str | None) -> str | None:
    """The last part of a name, without control characters."""
    if name is None:
        return None
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    return "".join(character for character in last if character.isprintable())[:FILENAME_LIMIT] or None
