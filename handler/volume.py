"""Our corner of the network volume: `glmocr/{models,checkpoints,results}`. Expiry never reaches outside it."""

import logging
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)


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


def mounted(path: Path) -> Volume | None:
    """The volume at `path`, or None when nothing is there."""
    return Volume(path) if path.is_dir() else None


def expire(folder: Path, *, max_age_s: float, max_bytes: int, now: float | None = None) -> int:
    """Remove entries of `folder` that are too old, then the oldest until `max_bytes` hold. Returns how many went.

    An entry is as old as its youngest file: a document being read is young. Links are removed, never followed.
    """
    if not folder.is_dir() or folder.is_symlink():
        return 0
    now = time.time() if now is None else now
    entries = sorted((_youngest(entry), _size(entry), entry) for entry in folder.iterdir())
    total = sum(size for _, size, _ in entries)
    removed = 0
    for touched, size, entry in entries:
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
