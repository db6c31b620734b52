"""The emulator for callers that are not asynchronous: it runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from emulator.server import Emulator

T = TypeVar("T")


class ThreadedEmulator:
    """A running emulator, seen from another thread."""

    def __init__(self, emulator: Emulator, loop: asyncio.AbstractEventLoop) -> None:
        self._emulator = emulator
        self._loop = loop
        self.base_url = emulator.base_url
        self.url = emulator.url
        self.endpoint = emulator.endpoint
        self.api_key = emulator.api_key

    def call(self, function: Callable[[Emulator], T]) -> T:
        """`function(emulator)`, run in the emulator's thread."""

        async def run() -> T:
            return function(self._emulator)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def wait(self, function: Callable[[Emulator], Coroutine[Any, Any, T]]) -> T:
        """The same for a function that gives a coroutine, such as `lambda e: e.skip(1860)`."""
        return asyncio.run_coroutine_threadsafe(function(self._emulator), self._loop).result()


@contextmanager
def threaded(emulator: Emulator) -> Iterator[ThreadedEmulator]:
    """Serve in a thread until the block ends."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="emulator", daemon=True)
    thread.start()

    def run(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    try:
        run(emulator.__aenter__())
        try:
            yield ThreadedEmulator(emulator, loop)
        finally:
            run(emulator.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
