"""Writes to the network volume, one after the other, that a full volume only delays."""

import asyncio
import errno
import logging
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TypeAlias

log = logging.getLogger(__name__)

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

Write: TypeAlias = Callable[[], object]
"""Something to do in a thread, that may raise `OSError` and may then be done again."""


class VolumeWrites:
    """A queue of writes. They run in the order they came, many in one go where they come faster than the volume is.

    None of them is a condition for anything: what a full volume refuses is tried again with the next write, what it
    refuses for another reason is given up, and both are only logged, once until it works again.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._due: deque[Write] = deque()
        self._working = Lock()
        self._refused = False

    @property
    def stuck(self) -> bool:
        """Something waits for a full volume."""
        return bool(self._due)

    async def do(self, *writes: Write) -> None:
        """Add to the queue; returns when it has been worked off as far as that is possible now."""
        self._due += writes
        if self._due:
            await asyncio.to_thread(self._work_off)

    def _work_off(self) -> None:
        with self._working:
            try:
                while self._due:
                    self._due[0]()
                    self._due.popleft()
                    self._refused = False
            except OSError as error:
                if error.errno not in FULL:
                    self._due.clear()
                if not self._refused:
                    log.warning("not written to the volume: %s", error, extra={"fields": {"document": self._name}})
                self._refused = True
