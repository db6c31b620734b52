import asyncio
import math

import pytest

from emulator import Clock, ManualClock, SystemClock
from emulator.clock import Signal, wait_for


async def test_manual_sleepers_wake_in_order() -> None:
    clock = ManualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, *naps: float) -> None:
        for nap in naps:
            await clock.sleep(nap)
            woken.append((name, clock.now()))

    tasks = [asyncio.create_task(sleeper("a", 5, 1)), asyncio.create_task(sleeper("b", 3, 3, 3))]
    await asyncio.sleep(0)
    await clock.advance(8)
    assert woken == [("b", 3), ("a", 5), ("b", 6), ("a", 6)]
    await clock.advance(1)
    await asyncio.gather(*tasks)
    assert woken[4:] == [("b", 9)]


@pytest.mark.parametrize("clock", [ManualClock(), SystemClock()], ids=["manual", "system"])
async def test_skipping_ends_a_long_sleep(clock: Clock) -> None:
    before = clock.now()
    sleeping = asyncio.create_task(clock.sleep(86_400))
    await asyncio.sleep(0)
    await clock.advance(86_400)
    await sleeping
    assert clock.now() - before >= 86_400


async def test_wait_for_looks_again_at_each_change() -> None:
    changed, values = Signal(), [None, None, 7]
    waiting = asyncio.create_task(wait_for(ManualClock(), changed, lambda: values.pop(0), math.inf))
    for _ in range(2):
        for _ in range(5):
            await asyncio.sleep(0)
        changed.notify()
    assert await waiting == 7


async def test_wait_for_gives_up() -> None:
    clock = ManualClock()
    waiting = asyncio.create_task(wait_for(clock, Signal(), lambda: 7 if clock.now() > 3 else None, 3))
    await asyncio.sleep(0)
    await clock.advance(3)
    assert await waiting is None
