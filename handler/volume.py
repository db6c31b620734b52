"""Our corner of the network volume: `glmocr/{models,checkpoints,results}`. Expiry never reaches outside it."""

import asyncio
import itertools
import logging
import os
import shutil
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

from handler.settings import Settings

log = logging.getLogger(__name__)

TIDY_INTERVAL_S = 600.0


@dataclass(frozen=True, slots=True)
class Volume:
    """The mounted volume. `root` exists; our folders are made when first needed."""

    root: Path

    @property
    def models(self) -> Path:
        """Model directories."""
        return self.root / "glmocr" / "models"

    @property
    def checkpoints(self) -> Path:
        """One folder per content key."""
        return self.root / "glmocr" / "checkpoints"

    @property
    def results(self) -> Path:
        """One file (and a folder of artifacts) per content key."""
        return self.root / "glmocr" / "results"


class Housekeeper:
    """Keeps our folders on the volume within their limits, at most every ten minutes, beside the jobs."""

    def __init__(self, volume: Volume | None, settings: Settings) -> None:
        self._volume = volume
        self._settings = settings
        self._due = 0.0
        self._tidying: asyncio.Task[None] | None = None

    def tidy(self) -> None:
        """Begin to expire what is due; cheap when nothing is. No job waits for it or fails with it."""
        if self._volume is None or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + TIDY_INTERVAL_S
        self._tidying = asyncio.create_task(self._tidy(self._volume))

    async def _tidy(self, volume: Volume) -> None:
        leaving = threading.Event()
        try:
            await asyncio.to_thread(self._expire, volume, leaving)
        except OSError as error:
            log.warning("the volume could not be tidied: %s", error)
        finally:
            leaving.set()  # the process waits for its threads before it ends

    def _expire(self, volume: Volume, leaving: threading.Event) -> None:
        keep = self._settings
        for folder, hours, max_mb in (
            (volume.checkpoints, keep.checkpoint_hours, keep.checkpoint_max_mb),
            (volume.results, keep.result_hours, keep.result_max_mb),
        ):
            expire(folder, max_age_s=hours * 3600, max_bytes=max_mb * 10**6, leaving=leaving)


def write_whole(path: Path, data: bytes) -> None:
    """Stage and rename: whoever finds `path` finds all of it. Its folder must exist. Raises `OSError`."""
    staged = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        staged.write_bytes(data)
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def mounted(path: Path) -> Volume | None:
    """The volume at `path`, or None when nothing is there."""
    return Volume(path) if path.is_dir() else None


def expire(
    folder: Path, *, max_age_s: float, max_bytes: int, now: float | None = None, leaving: threading.Event | None = None
) -> int:
    """Remove entries of `folder` that are too old, then the oldest until `max_bytes` hold. Returns how many went.

    An entry is as old as its youngest file: a document being read is young. Links are removed, never followed. Breaks
    off as soon as `leaving` is set.
    """
    if not folder.is_dir() or folder.is_symlink():
        return 0
    leaving = leaving or threading.Event()
    now = time.time() if now is None else now
    found = itertools.takewhile(lambda _: not leaving.is_set(), folder.iterdir())
    entries = sorted((_youngest(entry), _size(entry), entry) for entry in found)
    total = sum(size for _, size, _ in entries)
    removed = 0
    for touched, size, entry in entries:
        if leaving.is_set():
            break
        if now - touched <= max_age_s and total <= max_bytes:
            continue
        _remove(entry)
        total -= size
        removed += 1
    return removed


def _files(entry: Path) -> list[Path]:
    if entry.is_symlink() or not entry.is_dir():
        return [entry]
    return [entry, *(path for path in entry.rglob("*") if not path.is_dir() or path.is_symlink())]


def _youngest(entry: Path) -> float:
    return max((s.st_mtime for s in _stats(entry)), default=0.0)


def _size(entry: Path) -> int:
    return sum(s.st_size for s in _stats(entry))


def _stats(entry: Path) -> list[os.stat_result]:
    found = []
    for path in _files(entry):
        try:
            found.append(path.lstat())
        except FileNotFoundError:
            continue
    return found


def _remove(entry: Path) -> None:
    try:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
    except OSError as error:
        log.warning("could not expire %s: %s", entry.name, error)
