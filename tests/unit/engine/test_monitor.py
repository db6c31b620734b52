import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import psutil
import pytest

from handler.engine.api import EngineLoad, EngineRequest
from handler.engine.client import HttpEngine
from handler.engine.monitor import EngineMonitor, Pace
from handler.engine.server import EngineServer
from tests.unit.engine.conftest import SAMPLES, client_of

Make = Callable[..., EngineServer]


@pytest.fixture
async def engine(small_engine: Make) -> AsyncIterator[tuple[EngineServer, HttpEngine]]:
    with small_engine("--samples", str(SAMPLES)) as server:
        async with client_of(server) as engine:
            await server.wait_ready(engine.ready, 10)
            yield server, engine


class Watched:
    """A monitor with what it told."""

    def __init__(self, engine: HttpEngine, pace: Pace) -> None:
        self.seen: asyncio.Queue[EngineLoad | None] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.monitor = EngineMonitor(engine, observe=self.seen.put_nowait, on_gone=self.gone.set, pace=pace)


async def ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_it_samples_and_tells(engine: tuple[EngineServer, HttpEngine]) -> None:
    watched = Watched(engine[1], Pace(sample=0.01))
    task = asyncio.create_task(watched.monitor.run())
    for _ in range(3):
        assert await asyncio.wait_for(watched.seen.get(), 5) == EngineLoad(0, 0, 0.0, 0)
    assert watched.monitor.load == EngineLoad(0, 0, 0.0, 0)
    assert not watched.gone.is_set()
    await ended(task)


async def test_a_dead_process_is_told_once(engine: tuple[EngineServer, HttpEngine]) -> None:
    server, client = engine
    watched = Watched(client, Pace(sample=0.01))
    task = asyncio.create_task(watched.monitor.run())
    await asyncio.wait_for(watched.seen.get(), 5)
    os.kill(psutil.Process(server.pid).children()[0].pid, signal.SIGKILL)
    await asyncio.wait_for(watched.gone.wait(), 5)
    await task
    assert watched.monitor.load is None


async def test_an_idle_engine_that_hangs_is_found(
    engine: tuple[EngineServer, HttpEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handler.engine.client.PROBE_TIMEOUT_S", 0.3)
    server, client = engine
    watched = Watched(client, Pace(sample=0.01, idle_probe=0.2))
    task = asyncio.create_task(watched.monitor.run())
    await asyncio.wait_for(watched.seen.get(), 5)
    monkeypatch.setattr(client, "load", idle)  # the metrics endpoint of SGLang answers while its scheduler hangs
    pid = psutil.Process(server.pid).children()[0].pid
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.wait_for(watched.gone.wait(), 10)
    finally:
        os.kill(pid, signal.SIGCONT)
    await task
    assert not client.alive()


async def idle() -> EngineLoad:
    return EngineLoad(0, 0)


async def test_a_busy_engine_is_never_probed(small_engine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_engine("--samples", str(SAMPLES)) as server:
        async with client_of(server) as client:
            await server.wait_ready(client.ready, 10)
            probes: list[None] = []

            async def probe() -> bool:
                probes.append(None)
                return True

            monkeypatch.setattr(client, "responds", probe)
            watched = Watched(client, Pace(sample=0.01, idle_probe=0.0))
            call = asyncio.create_task(client.complete(EngineRequest("wait 60", b"", 8)))
            await asyncio.wait({call}, timeout=0.05)
            task = asyncio.create_task(watched.monitor.run())
            for _ in range(5):
                await asyncio.wait_for(watched.seen.get(), 5)
            assert probes == []
            call.cancel()
            await asyncio.wait({call})
            while not probes:
                await asyncio.wait_for(watched.seen.get(), 5)
            await ended(task)


async def test_occupancy_sums_up_what_was_seen(
    engine: tuple[EngineServer, HttpEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = iter(
        [EngineLoad(0, 0, 0.0, 1), EngineLoad(10, 4, 0.5, 1), EngineLoad(20, 0, 0.25, 3), EngineLoad(0, 0, 0.0, 3)]
    )

    async def next_load() -> EngineLoad | None:
        return next(loads, None)

    monkeypatch.setattr(engine[1], "load", next_load)
    watched = Watched(engine[1], Pace(sample=0.001))
    assert watched.monitor.occupancy() == {"samples": 0, "busy_samples": 0}
    task = asyncio.create_task(watched.monitor.run())
    while await asyncio.wait_for(watched.seen.get(), 5) is not None:
        pass
    await ended(task)
    assert watched.monitor.occupancy() == {
        "samples": 4,
        "busy_samples": 2,
        "running_mean": 15.0,
        "running_peak": 20,
        "queued_mean": 2.0,
        "queued_peak": 4,
        "pool_use_peak": 0.5,
        "retractions": 2,
    }
    assert watched.monitor.occupancy(since=float("inf")) == {"samples": 0, "busy_samples": 0}
