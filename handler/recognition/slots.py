"""How many regions are in the engine at once, and whose turn is next.

One `RegionSlots` for the whole process, shared by all jobs:

    async with slots.slot(job, cost):      # job: any hashable; cost: the answer tokens expected
        reply = await engine.complete(request)

* A free slot is given at once, so the first region of the first page never waits for a look-ahead to fill.
* Otherwise the next slot goes to the job with the fewest regions in the engine: a short document does not wait
  for a long one. Within the job regions go in their order, but each has a head start in proportion to its cost:
  a table is sent as many regions early as will be read while it runs, so that it does not form the tail, and
  everything else keeps its order, so that pages end in theirs.
* The limit starts at 1.5 x the engine's slots and follows its load: `observe`, called about once a second, lets it
  grow while the engine's queue is empty and shrink while more queues than runs: to 1.5 x what runs of ours, so that
  workers which share an engine together ask for what one alone would. An `EngineBusy` that leaves the block, or
  `pushed_back()`, lowers it at once.

Wait between retries outside the block, so that a region that backs off holds no slot.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush

from handler.engine.api import EngineBusy, EngineLoad

HEAD_START = 1.5
"""How far a region of mean cost is put ahead, in limits. While one of k times the mean cost runs, about k engines full
of others are read. By `bench/` 155 pages are read 8 % faster than in plain order. Longest first gains nothing there:
its pages stay open for their shortest regions and keep later tables out."""
UNKNOWN_SLOTS = 32
"""Assumed where the engine does not say how many it runs at once."""
OVERCOMMIT = 1.5
"""Regions per engine slot: the queue that this leaves in the engine bridges the way of the next request."""
MOST_OVERCOMMIT = 3
SMALLEST_LIMIT = 4
PUSH_BACK_PAUSE_S = 1.0
RECOVERY_PAUSE_S = 5.0


@dataclass(slots=True, eq=False)
class _JobQueue:
    """One job's waiting regions, by their number less their head start."""

    in_flight: int = 0
    last_grant: int = 0
    pushed: int = 0
    waiting: int = 0
    total_cost: float = 0.0
    by_rank: list[tuple[float, int, "asyncio.Future[None]"]] = field(default_factory=list)

    def push(self, cost: float, head_start: float) -> "asyncio.Future[None]":
        """Queue up, `head_start` regions ahead if of mean cost; the future is done when the slot is given."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.pushed += 1
        self.waiting += 1
        self.total_cost += cost
        mean = self.total_cost / self.pushed
        rank = self.pushed - (head_start * cost / mean if mean else 0.0)
        heappush(self.by_rank, (rank, self.pushed, granted))
        return granted

    def pop(self) -> "asyncio.Future[None] | None":
        """The future whose turn it is; None when all that still queue were cancelled."""
        while self.by_rank:
            granted = heappop(self.by_rank)[2]
            if not granted.done():
                return granted
        return None


class RegionSlots:
    """The process-wide limit of regions in the engine.

    `engine_slots`: how many the engine runs at once, None where it does not say. `fixed`: the operator's own limit,
    which only push-backs lower, for a while. `head_start`: see `HEAD_START`; 0 is first in, first out. `clock`:
    monotonic seconds.
    """

    def __init__(
        self,
        engine_slots: int | None = None,
        *,
        fixed: int | None = None,
        head_start: float = HEAD_START,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        known = engine_slots or UNKNOWN_SLOTS
        self._start = self._limit = fixed or max(1, int(known * OVERCOMMIT))
        self._ceiling = fixed or known * MOST_OVERCOMMIT
        self._floor = fixed or min(SMALLEST_LIMIT, self._limit)
        self.head_start = head_start
        self._clock = clock
        self._jobs: dict[Hashable, _JobQueue] = {}
        self._in_flight = 0
        self._grants = 0
        self._was_crowded = False
        self._pushed_back_at = float("-inf")

    @property
    def limit(self) -> int:
        """Regions that may be in the engine now."""
        return self._limit

    @property
    def in_flight(self) -> int:
        """Regions in the engine now."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Regions that wait for a slot."""
        return sum(queue.waiting for queue in self._jobs.values())

    @asynccontextmanager
    async def slot(self, job: Hashable, cost: float = 0.0) -> AsyncIterator[None]:
        """Hold one slot. `cost` ranks the job's own regions, in any one unit; answer tokens are a good one."""
        queue = self._jobs.setdefault(job, _JobQueue())
        await self._acquire(job, queue, cost)
        try:
            yield
        except EngineBusy:
            self.pushed_back()
            raise
        finally:
            self._release(job, queue)

    def observe(self, load: EngineLoad | None) -> None:
        """Follow the engine's load; where it does not tell (None), only recover from push-backs."""
        step = max(1, self._limit // 8)
        crowded = load is not None and load.queued > max(load.running, self._floor)
        if load is not None and crowded and self._was_crowded and self._in_flight:
            others = max(0, load.running + load.queued - self._in_flight)
            runs = load.running * self._in_flight / (self._in_flight + others)
            slowly = self._limit - (self._limit // 2 if 2 * others > self._in_flight else step)
            self._limit = min(self._limit, max(self._floor, slowly, int(runs * OVERCOMMIT)))
        elif (load is None or load.queued == 0) and self._clock() - self._pushed_back_at >= RECOVERY_PAUSE_S:
            starved = load is not None and self.waiting > 0
            self._limit = min(self._limit + step, self._ceiling if starved else max(self._limit, self._start))
        self._was_crowded = crowded
        self._grant()

    def pushed_back(self) -> None:
        """The engine refused or dropped a request for its load: a quarter less, at most once a second."""
        now = self._clock()
        if now - self._pushed_back_at >= PUSH_BACK_PAUSE_S:
            self._pushed_back_at = now
            self._limit = max(min(SMALLEST_LIMIT, self._limit), self._limit * 3 // 4)

    async def _acquire(self, job: Hashable, queue: _JobQueue, cost: float) -> None:
        turn = queue.push(cost, self.head_start * self._limit)
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                queue.waiting -= 1
                self._forget(job, queue)
            else:
                self._release(job, queue)
            raise

    def _release(self, job: Hashable, queue: _JobQueue) -> None:
        queue.in_flight -= 1
        self._in_flight -= 1
        self._forget(job, queue)
        self._grant()

    def _forget(self, job: Hashable, queue: _JobQueue) -> None:
        if not queue.in_flight and not queue.waiting and self._jobs.get(job) is queue:
            del self._jobs[job]

    def _grant(self) -> None:
        while self._in_flight < self._limit:
            hungry = [queue for queue in self._jobs.values() if queue.waiting]
            hungry.sort(key=lambda queue: (queue.in_flight, queue.last_grant))
            for queue in hungry:
                turn = queue.pop()
                if turn is not None:
                    break
            else:
                return
            queue.waiting -= 1
            queue.in_flight += 1
            self._in_flight += 1
            self._grants += 1
            queue.last_grant = self._grants
            turn.set_result(None)
