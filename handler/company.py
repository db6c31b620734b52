"""Which pages are read beside which: one that may be killing its worker is read where nothing else is to blame."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum


class Care(StrEnum):
    """How carefully a page is read."""

    TOGETHER = "together"
    """Beside other pages, of its document and of others."""
    SINGLED_OUT = "singled_out"
    """Last in its document, and few such pages at a time in a worker."""
    ALONE = "alone"
    """Last, with no other page in the worker."""


SINGLED_OUT_AT_ONCE = 4
"""Few enough that a death leaves few to be read alone, enough that one chance death does not slow a worker down."""


class Company:
    """The pages being read in this process. A page that waits to be read alone goes before those that do not."""

    def __init__(self) -> None:
        self._reading = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._hermits = 0
        self._no_hermit = asyncio.Event()
        self._no_hermit.set()
        self._alone = asyncio.Lock()
        self._singled_out = asyncio.Semaphore(SINGLED_OUT_AT_ONCE)

    @asynccontextmanager
    async def reading(self, care: Care) -> AsyncIterator[None]:
        """Wait until a page may be read with this care; it is being read inside the block."""
        match care:
            case Care.TOGETHER:
                async with self._beside_others():
                    yield
            case Care.SINGLED_OUT:
                async with self._singled_out, self._beside_others():
                    yield
            case Care.ALONE:
                async with self._beside_none():
                    yield

    @asynccontextmanager
    async def _beside_others(self) -> AsyncIterator[None]:
        while self._hermits:
            await self._no_hermit.wait()
        self._reading += 1
        self._empty.clear()
        try:
            yield
        finally:
            self._reading -= 1
            if not self._reading:
                self._empty.set()

    @asynccontextmanager
    async def _beside_none(self) -> AsyncIterator[None]:
        self._hermits += 1
        self._no_hermit.clear()
        try:
            async with self._alone:
                await self._empty.wait()
                yield
        finally:
            self._hermits -= 1
            if not self._hermits:
                self._no_hermit.set()
