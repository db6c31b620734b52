"""SIGTERM: take no more jobs, let running ones finish for a while, then leave, whatever the SDK is waiting for.

runpod 1.12.0 sets a flag on SIGTERM and returns once its loops notice, which can take as long as its job-take poll
hangs (90 s), far beyond the platform's patience; and a job that never ends is waited for without limit. A signal
handler installed before `start()` would be inherited by its forked heartbeat, so ours is installed from inside its
running loop, the first time the SDK asks for its concurrency.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from types import FrameType

log = logging.getLogger(__name__)

CANCEL_PATIENCE_S = 1.0
"""How long a cancelled job may take to put its things away."""


class Shutdown:
    """Knows which jobs run, and ends the loop in time."""

    def __init__(self, grace_s: float, on_stop: Callable[[], Awaitable[None]]) -> None:
        """`on_stop` is awaited once, as soon as the worker was asked to stop, beside the jobs that still run."""
        self._grace_s = grace_s
        self._on_stop = on_stop
        self._jobs: set[asyncio.Task[object]] = set()
        self._watching = False
        self._stopping = False
        self._ending: asyncio.Task[None] | None = None

    @property
    def stopping(self) -> bool:
        """True once the worker was asked to stop."""
        return self._stopping

    def watch(self) -> None:
        """Take the signals over, inside the SDK's running loop; the SDK's own handlers are still called."""
        if self._watching:
            return
        self._watching = True
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            theirs = signal.getsignal(number)
            loop.add_signal_handler(number, self._begin, number, theirs if callable(theirs) else None)

    def _begin(self, number: int, theirs: Callable[[int, FrameType | None], object] | None) -> None:
        if theirs is not None:
            theirs(number, None)
        if not self._stopping:
            self._stopping = True
            log.info("stopping: %d jobs have %.0f s to finish", len(self._jobs), self._grace_s)
            self._ending = asyncio.get_running_loop().create_task(self._end())

    async def _end(self) -> None:
        told = asyncio.ensure_future(self._on_stop())  # a volume that hangs must not use up the grace
        if self._jobs:
            _, running = await asyncio.wait(self._jobs, timeout=self._grace_s)
            if running:
                log.warning("%d jobs did not finish in time; their finished pages are kept", len(running))
                for job in running:
                    job.cancel()
                await asyncio.wait(running, timeout=CANCEL_PATIENCE_S)
        await asyncio.wait({told}, timeout=CANCEL_PATIENCE_S)
        for task in asyncio.all_tasks():
            if task is not self._ending:
                task.cancel()

    def adopt_current_job(self) -> None:
        """Count the running task as a job until it is done: the SDK's task, which also posts the result.

        A job that arrives while we stop is cancelled before it begins. It was not answered, so the platform
        gives it to another worker, as it does with those that could not finish.
        """
        task = asyncio.current_task()
        assert task is not None
        if self._stopping:
            task.cancel()
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)
