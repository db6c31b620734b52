"""The installed RunPod SDK, as a real process, against the emulator."""

import aiohttp
import pytest

from emulator import Emulator
from emulator.autoscaler import Scaling
from tests.emulator.conftest import ECHO_WORKER, Caller
from tests.support.survivors import survivors


@pytest.fixture
async def caller(session: aiohttp.ClientSession):  # type: ignore[no-untyped-def]
    async with Emulator(command=ECHO_WORKER, scaling=Scaling(min_workers=1, max_workers=1)) as emulator:
        await emulator.wait_ready(60)
        yield Caller(emulator, session)
        members = emulator.autoscaler.processes[0].members()  # type: ignore[union-attr]
    assert survivors(members, within_s=0) == []


async def test_sdk_takes_reports_and_finishes(caller: Caller) -> None:
    _, answer = await caller.call("POST", "runsync", {"input": {"steps": 2}})
    assert answer["status"] == "COMPLETED"
    assert answer["output"]["echo"] == {"steps": 2}
    (job,) = caller.emulator.jobs()
    assert job.progress_posts == [{"pages_done": 1}, {"pages_done": 2}]

    big = await caller.run(fill=10_000_001)
    await caller.emulator.wait_job(big)
    shown = await caller.status(big)
    assert shown["status"] == "COMPLETED"
    assert "output" not in shown

    failing = await caller.run(error="bad input")
    await caller.emulator.wait_job(failing)
    assert (await caller.status(failing))["error"] == "bad input"
