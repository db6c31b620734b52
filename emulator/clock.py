"""Time as the endpoint sees it: the real one, or one that tests move by hand."""

import asyncio
import contextlib
import heapq
import itertools
import math
import time
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """Seconds since some origin, sleeping in them, and skipping some."""

    def now(self) -> float:
        """Seconds; never goes backwards."""

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        """Return once that much of this clock's time has passed since the call."""

    async def advance(self, seconds: float) -> None:
        """Let that much time pass now."""


class Signal:
    """Something changed; whoever waits looks again."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def notify(self) -> None:
        """Wake everyone who waits now."""
        self._event.set()
        self._event = asyncio.Event()

    def wait(self) -> Coroutine[None, None, object]:
        """Ends at the next `notify` after this call, even if it is awaited only later."""
        return self._event.wait()


class SystemClock:
    """The machine's monotonic clock, plus what was skipped."""

    def __init__(self) -> None:
        self._skipped_s = 0.0
        self._skip = Signal()

    def now(self) -> float:
        """Seconds since an arbitrary origin."""
        return time.monotonic() + self._skipped_s

    async def sleep(self, seconds: float) -> None:
        """Sleep in real time, or until enough has been skipped."""
        deadline = self.now() + seconds
        while (left := deadline - self.now()) > 0:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._skip.wait(), None if left == math.inf else left)
        await asyncio.sleep(0)

    async def advance(self, seconds: float) -> None:
        """Skip ahead and let those run who waited for it."""
        self._skipped_s += seconds
        self._skip.notify()
        await _let_others_run()


class ManualClock:
    """Stands still until `advance` is awaited; sleepers wake in the order of their deadlines."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> float:
        """Seconds since the start, plus everything advanced."""
        return self._now

    def sleep(self, seconds: float) -> Coroutine[Any, Any, None]:
        """Wait until the clock has been advanced that far."""
        woken = asyncio.get_running_loop().create_future()
        if seconds <= 0:
            woken.set_result(None)
        else:
            heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), woken))
        return _until(woken)

    async def advance(self, seconds: float) -> None:
        """Move on, waking sleepers one by one and letting each run before time goes further."""
        target = self._now + seconds
        while self._sleepers and self._sleepers[0][0] <= target:
            deadline, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                self._now = deadline
                woken.set_result(None)
                await _let_others_run()
        self._now = target
        await _let_others_run()


async def wait_for(clock: Clock, changed: Signal, ready: Callable[[], T | None], timeout_s: float) -> T | None:
    """What `ready` gives once it gives something, looked at again at every change; None after `timeout_s`."""
    timer = asyncio.ensure_future(clock.sleep(timeout_s))
    try:
        while (value := ready()) is None and not timer.done():
            change = asyncio.ensure_future(changed.wait())
            try:
                await asyncio.wait({change, timer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                change.cancel()
        return value
    finally:
        timer.cancel()


async def _until(woken: asyncio.Future[None]) -> None:
    await woken
    await asyncio.sleep(0)


async def _let_others_run(rounds: int = 10) -> None:
    for _ in range(rounds):
        await asyncio.sleep(0)
