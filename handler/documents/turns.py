"""In which order the render processes serve: the page that is nearest to being sent goes first.

The processes' own queue is first in, first out. Filled freely, it would draw every page in flight before it cut the
first one; so it only gets what it needs to stay busy, and the rest waits here.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum
from heapq import heappop, heappush
from itertools import count


class Rank(IntEnum):
    """Kinds of work, the most urgent first."""

    CUT = 0
    COVERAGE = 1
    OPEN = 2
    DRAW = 3


class Turns:
    """At most `places` blocks run at once; a free place goes to the lowest rank, then to the longest wait."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._numbers = count()
        self._waiting: list[tuple[Rank, int, asyncio.Future[None]]] = []

    @asynccontextmanager
    async def turn(self, rank: Rank) -> AsyncIterator[None]:
        """Wait for a place and hold it."""
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (rank, next(self._numbers), turn))
        self._serve()
        try:
            await turn
            yield
        finally:
            if not turn.cancelled():
                self._free += 1
                self._serve()

    def _serve(self) -> None:
        while self._free and self._waiting:
            turn = heappop(self._waiting)[2]
            if not turn.cancelled():
                self._free -= 1
                turn.set_result(None)
