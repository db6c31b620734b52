"""A worker inside the emulator's own process, for tests of clients: it answers jobs as a function says."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from emulator.clock import Clock, wait_for
from emulator.fleet import Fleet
from emulator.jobs import Job, Json
from emulator.queue import JobQueue

Answer: TypeAlias = Callable[[Job], Awaitable[Mapping[str, Json]]]
"""From a job to what a worker would post: `{"output": ...}`, `{"error": ...}` or both."""


async def respond(answer: Answer, queue: JobQueue, fleet: Fleet, clock: Clock, worker_id: str = "responder") -> None:
    """Take one job after the other and answer it, until cancelled."""
    worker = fleet.enlist(worker_id)
    fleet.polled(worker)
    while True:
        jobs = await wait_for(clock, queue.changed, lambda: queue.take(worker_id) or None, float("inf"))
        for job in jobs or ():
            queue.finish(job, await answer(job))
