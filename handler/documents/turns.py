"""In which order the render processes serve: the page that is nearest to being sent goes first.

The processes' own queue is first in, first out. Filled freely, it would draw every page in flight before it cut the
first one; so it only gets what it needs to stay busy, and the rest waits here. Until the first page is cut one process
is kept for that, since nothing is in the engine yet; from then on they get a little more than they can begin at once,
since they would be idle while this process sends a page's regions. Documents take turns: the first page
of one that is new goes before the next pages of all others, so that a short document does not wait for long ones.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from enum import IntEnum
from heapq import heappop, heappush
from itertools import count

OWNERS_REMEMBERED = 1024
ROUNDS_REMEMBERED = 64
"""Owners that have asked for nothing for so many rounds are forgotten when there are too many, and count as new."""


AHEAD = 1
"""Drawings in the processes' own queue."""


class Rank(IntEnum):
    """Kinds of work, the most urgent first."""

    CUT = 0
    OPEN = 1
    DRAW = 2


class Turns:
    """At most `processes` blocks run at once: one of them no drawing before the first cut, `ahead` more after it.

    A free place goes to the lowest rank, then to the earliest round.

    Every block of an owner belongs to a later round than the one before; blocks without owner, and those of one round,
    go by their wait.
    """

    def __init__(self, processes: int, ahead: int = AHEAD) -> None:
        self._processes = processes
        self._ahead = ahead
        self._running: Counter[Rank] = Counter()
        self._cutting = False
        self._numbers = count()
        self._waiting: list[tuple[Rank, int, int, asyncio.Future[None]]] = []
        self._round = 0
        self._rounds: dict[Hashable, int] = {}

    @asynccontextmanager
    async def turn(self, rank: Rank, owner: Hashable = None) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank, self._round_of(owner), next(self._numbers), turn))
        self._serve()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled():
                self._running[rank] -= 1
                self._serve()
                self._cutting = self._cutting and self._running.total() > 0

    def _serve(self) -> None:
        while self._waiting:
            rank, of_round, _, turn = self._waiting[0]
            if not (turn.cancelled() or self._fits(rank)):
                return
            heappop(self._waiting)
            if not turn.cancelled():
                self._running[rank] += 1
                self._cutting = self._cutting or rank is Rank.CUT
                self._round = max(self._round, of_round)
                turn.set_result(None)

    def _fits(self, rank: Rank) -> bool:
        if not self._cutting:
            room = max(1, self._processes - 1) if rank is Rank.DRAW else self._processes + 1
        else:
            room = self._processes + self._ahead + (rank is not Rank.DRAW)
        return self._running.total() < room

    def _round_of(self, owner: Hashable) -> int:
        if owner is None:
            return 0
        last = self._rounds.get(owner)
        self._rounds[owner] = self._round - 1 if last is None else max(self._round, last + 1)
        if len(self._rounds) > OWNERS_REMEMBERED:
            self._rounds = {o: r for o, r in self._rounds.items() if r >= self._round - ROUNDS_REMEMBERED}
        return self._rounds[owner]
