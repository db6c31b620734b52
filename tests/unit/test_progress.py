import asyncio

import pytest

from handler.engine.api import EngineLoad
from handler.progress import ProgressMeter, ProgressReporter
from handler.schema import Progress


async def test_the_message_on_its_way_is_awaited_before_the_end() -> None:
    meter, sent = ProgressMeter(), []
    release, arrived = asyncio.Event(), asyncio.Event()

    async def send(progress: Progress) -> None:
        arrived.set()
        await release.wait()
        sent.append(progress)

    async def job() -> None:
        meter.pages_total = 3
        async with ProgressReporter(meter, send, lambda: EngineLoad(running=2, queued=1)):
            await arrived.wait()

    task = asyncio.create_task(job())
    await arrived.wait()
    await asyncio.sleep(0)
    assert not task.done()
    release.set()
    await task
    assert sent == [Progress(pages_done=0, pages_total=3, regions_done=0, running=2, queued=1)]


async def test_says_nothing_before_the_total_is_known_and_never_twice_the_same() -> None:
    meter, sent = ProgressMeter(), []
    told = asyncio.Event()

    async def send(progress: Progress) -> None:
        sent.append((progress.pages_done, progress.pages_total))
        told.set()

    async with ProgressReporter(meter, send, lambda: None, interval_s=0.001):
        await asyncio.sleep(0.01)
        assert sent == []
        meter.pages_total = 2
        await told.wait()
        told.clear()
        await asyncio.sleep(0.01)
        meter.page_done(regions=4)
        await told.wait()
    assert sent == [(0, 2), (1, 2)]
    assert meter.regions_done == 4


async def test_says_again_what_may_have_been_lost() -> None:
    meter, sent = ProgressMeter(), []
    twice = asyncio.Event()

    async def send(progress: Progress) -> None:
        sent.append(progress)
        if len(sent) == 2:
            twice.set()

    meter.pages_total = 2
    async with ProgressReporter(meter, send, lambda: None, interval_s=0.001, repeat_s=0.01):
        await twice.wait()
    assert sent[0] == sent[1]


async def test_a_sender_that_breaks_costs_the_job_nothing(caplog: pytest.LogCaptureFixture) -> None:
    meter, broken = ProgressMeter(), asyncio.Event()

    async def send(progress: Progress) -> None:
        broken.set()
        raise RuntimeError("no platform")

    meter.pages_total = 2
    async with ProgressReporter(meter, send, lambda: None):
        await broken.wait()
    assert "no longer reported" in caplog.text
