"""A job's folder on the container's disk, and an end to those whose worker was killed.

A folder in use is locked. The kernel lets go of the lock when its owner dies, however it dies, and knows no owner by a
number that another process may have by then.
"""

import fcntl
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

PREFIX = "glmocr-job-"


@contextmanager
def job_folder() -> Iterator[Path]:
    """An empty folder that is gone after the block."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        with _locked(folder, fcntl.LOCK_EX) as ours:
            if not ours:  # a sweep came between
                continue
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            return


def sweep() -> int:
    """Remove the folders that nobody holds. Returns how many there were."""
    swept = 0
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as stale:
            if stale:
                shutil.rmtree(folder, ignore_errors=True)
                swept += 1
    if swept:
        log.info("removed %d folders of jobs whose worker was killed", swept)
    return swept


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[bool]:
    """Whether the lock could be had on a folder that still stands."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        yield False
    else:
        yield _stands(folder, descriptor)
    finally:
        os.close(descriptor)


def _stands(folder: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(folder.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
