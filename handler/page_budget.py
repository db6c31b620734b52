"""How many bytes of pages the process holds at once, shared fairly between documents."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(eq=False)
class Reservation:
    """Bytes held for one page. `resize` as soon as the real size is known."""

    budget: "PageBudget"
    document: str
    nbytes: int

    def resize(self, nbytes: int) -> None:
        """Hold `nbytes` instead. Growing never waits: the bytes are already there."""
        self.budget.adjust(self.document, nbytes - self.nbytes)
        self.nbytes = nbytes


@dataclass(eq=False, slots=True)
class _Waiter:
    document: str
    nbytes: int
    ready: "asyncio.Future[None]" = field(repr=False)


class PageBudget:
    """A semaphore counted in bytes. The document that holds least goes first: a short one never waits for a long one.

    One page always fits, however large it is: the limit bounds how many, not how big.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._held: defaultdict[str, int] = defaultdict(int)
        self._waiters: list[_Waiter] = []

    @asynccontextmanager
    async def reserve(self, document: str, nbytes: int) -> AsyncIterator[Reservation]:
        """Wait until `nbytes` fit, hold them inside the block."""
        await self._acquire(document, nbytes)
        reservation = Reservation(self, document, nbytes)
        try:
            yield reservation
        finally:
            reservation.resize(0)

    def adjust(self, document: str, delta: int) -> None:
        """Count `delta` bytes more (or less) for `document` and wake whoever fits now."""
        self.used += delta
        self._held[document] += delta
        if not self._held[document]:
            del self._held[document]
        self._wake()

    async def _acquire(self, document: str, nbytes: int) -> None:
        if not self._waiters and self._fits(nbytes):
            self.adjust(document, nbytes)
            return
        waiter = _Waiter(document, nbytes, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        try:
            await waiter.ready
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            else:
                self.adjust(document, -nbytes)
            raise

    def _fits(self, nbytes: int) -> bool:
        return self.used == 0 or self.used + nbytes <= self.limit

    def _wake(self) -> None:
        while self._waiters:
            first = min(self._waiters, key=lambda waiter: self._held.get(waiter.document, 0))
            if not self._fits(first.nbytes):
                return
            self._waiters.remove(first)
            self.used += first.nbytes
            self._held[first.document] += first.nbytes
            first.ready.set_result(None)
