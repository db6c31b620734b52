"""Progress to the platform: at most one message every two seconds, and none after the end.

The platform keeps whatever comes last, so the final result must: `stop` waits for the message on its way.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from handler.engine.api import EngineLoad
from handler.schema import Progress

ProgressSender: TypeAlias = Callable[[Progress], Awaitable[None]]
PROGRESS_INTERVAL_S = 2.0
REPEAT_S = 10.0
"""What has not changed is said again so often: nobody tells whether a message has arrived."""

log = logging.getLogger(__name__)


class ProgressMeter:
    """Counts what is done. Cheap to update, read by the reporter."""

    def __init__(self) -> None:
        self.pages_total = 0
        self.pages_done = 0
        self.regions_done = 0

    def page_done(self, regions: int) -> None:
        """One page has its entry."""
        self.pages_done += 1
        self.regions_done += regions


class ProgressReporter:
    """An async context manager: reports while the block runs, and is silent when it has ended."""

    def __init__(
        self,
        meter: ProgressMeter,
        send: ProgressSender,
        load: Callable[[], EngineLoad | None],
        interval_s: float = PROGRESS_INTERVAL_S,
        repeat_s: float = REPEAT_S,
    ) -> None:
        self._meter = meter
        self._send = send
        self._load = load
        self._interval = interval_s
        self._repeat = repeat_s
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ProgressReporter":
        self._task = asyncio.create_task(self._report())
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._stop.set()
        if self._task is not None:
            await asyncio.wait({self._task})
            if not self._task.cancelled() and (error := self._task.exception()):
                log.error("progress is no longer reported", exc_info=error)

    async def _report(self) -> None:
        last: Progress | None = None
        said = float("-inf")
        while not self._stop.is_set():
            now = self._snapshot()
            if now.pages_total and (now != last or time.monotonic() - said >= self._repeat):
                await self._send(now)
                last, said = now, time.monotonic()
            try:
                await asyncio.wait_for(self._stop.wait(), self._interval)
            except TimeoutError:
                continue

    def _snapshot(self) -> Progress:
        load = self._load()
        return Progress(
            pages_done=self._meter.pages_done,
            pages_total=self._meter.pages_total,
            regions_done=self._meter.regions_done,
            running=load.running if load else None,
            queued=load.queued if load else None,
        )
