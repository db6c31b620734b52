"""Waiting for what an emulator does, without looking again and again."""

import asyncio
from collections.abc import Callable

from emulator import Emulator


async def until(emulator: Emulator, condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Until a request or a transition makes it true, in real time."""
    changes = {emulator.traffic, emulator.queue.changed}
    async with asyncio.timeout(timeout_s):
        while not condition():
            waits = [asyncio.ensure_future(change.wait()) for change in changes]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
