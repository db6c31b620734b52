"""One downloader at a time on a shared directory, also across hosts and after a crash.

The lock is flufl.lock's: hard links, which network file systems keep atomic, and a lifetime after which others break
it. `flock` is not used: network file systems ignore it or keep it for ever after a crash. A thread renews the
lifetime; whoever finds the lock lost stops writing before the next byte.
"""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flufl.lock import Lock, LockError, NotLockedError, TimeOutError

from handler.errors import ModelError

logger = logging.getLogger(__name__)

LIFETIME_S = 60
"""A crashed holder is presumed dead after this plus flufl.lock's 10 s for differing clocks."""
PATIENCE_S = 1800.0
ANNOUNCE_S = 15


class LeaseLost(ModelError):
    """Another worker took over this download, because this one looked dead for too long."""


class Lease:
    """A held lock whose lifetime is being renewed."""

    def __init__(self, lock: Lock) -> None:
        self._lock = lock
        self._lifetime_s = lock.lifetime.total_seconds()
        self._renewed = time.monotonic()
        self._lost = threading.Event()
        self._done = threading.Event()
        self._renewer = threading.Thread(target=self._renew, name="model-lease", daemon=True)

    def check(self) -> None:
        """Raises `LeaseLost` if the lock is no longer ours, or may not be: a stopped process wakes up late."""
        if self._lost.is_set() or time.monotonic() - self._renewed > self._lifetime_s:
            raise LeaseLost

    def confirm(self) -> None:
        """As `check`, after asking the file system."""
        self._touch()
        self.check()

    def start(self) -> None:
        """Renew from now on."""
        self._renewer.start()

    def stop(self) -> None:
        """Renew no more."""
        self._done.set()
        self._renewer.join()

    def _renew(self) -> None:
        while not self._done.wait(self._lifetime_s / 6):
            self._touch()

    def _touch(self) -> None:
        asked = time.monotonic()
        try:
            self._lock.refresh()
        except (NotLockedError, OSError):
            self._lost.set()
        else:
            self._renewed = asked


def _acquire(lock: Lock, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            lock.lock(timeout=ANNOUNCE_S)
        except TimeOutError:
            if time.monotonic() > deadline:
                raise ModelError(f"another worker has held {lock.lockfile} for {patience_s:.0f} s") from None
            logger.info("another worker is downloading; waiting for %s", lock.lockfile)
        else:
            return


@contextmanager
def hold(path: Path, *, lifetime_s: int = LIFETIME_S, patience_s: float = PATIENCE_S) -> Iterator[Lease]:
    """Hold the lock at `path`, waiting for whoever holds it now. Raises `ModelError` after `patience_s` seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = Lock(str(path), lifetime=lifetime_s)
    _acquire(lock, patience_s)
    lease = Lease(lock)
    lease.start()
    try:
        yield lease
    finally:
        lease.stop()
        try:
            lock.unlock(unconditionally=True)
        except LockError:
            logger.warning("the lock %s was already gone", path)
