"""Real worker processes: started, counted, lost, replaced and gone at the end."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
import psutil
import pytest

from emulator import Emulator, JobStatus, Limits, ScalerType, Scaling, WorkerBootFailed, WorkerCommand
from tests.emulator.conftest import ECHO_WORKER, Caller
from tests.support.survivors import survivors
from tests.support.waiting import until

DEADLINE_S = 60.0


@asynccontextmanager
async def endpoint(session: aiohttp.ClientSession, scaling: Scaling) -> AsyncIterator[Caller]:
    async with Emulator(command=ECHO_WORKER, scaling=scaling) as emulator:
        yield Caller(emulator, session)
        ids = [worker.id for worker in emulator.workers()]
    assert [p for p in psutil.process_iter() if _worker_of(p) in ids] == []


def _worker_of(process: psutil.Process) -> str | None:
    try:
        return process.environ().get("RUNPOD_POD_ID")
    except psutil.Error:
        return None


def states(caller: Caller) -> list[str]:
    return [worker.state.value for worker in caller.emulator.workers()]


async def test_scales_from_nothing_by_requests_and_back(session: aiohttp.ClientSession) -> None:
    scaling = Scaling(scaler=ScalerType.REQUEST_COUNT, scaler_value=1, max_workers=2, idle_timeout_s=1)
    async with endpoint(session, scaling) as caller:
        jobs = [await caller.run() for _ in range(3)]
        for job_id in jobs:
            await caller.emulator.wait_job(job_id, DEADLINE_S)
        assert len(states(caller)) == 2
        await until(caller.emulator, lambda: states(caller) == ["gone", "gone"])


async def test_scales_by_queue_delay_but_not_for_low_priority(session: aiohttp.ClientSession) -> None:
    async with endpoint(session, Scaling(max_workers=1)) as caller:
        low = {"input": {}, "policy": {"lowPriority": True}}
        _, patient = await caller.call("POST", "run", low)
        await caller.emulator.skip(60)
        await asyncio.sleep(1.1)
        assert states(caller) == []
        urgent = await caller.run()
        await caller.emulator.skip(5)
        for job_id in (patient["id"], urgent):
            await caller.emulator.wait_job(job_id, DEADLINE_S)
        assert len(states(caller)) == 1


async def test_silent_worker_is_taken_away_and_its_job_done_elsewhere(session: aiohttp.ClientSession) -> None:
    command = replace(ECHO_WORKER, env={"RUNPOD_PING_INTERVAL": "1000"})
    scaling = Scaling(min_workers=1, max_workers=1)
    async with Emulator(command=command, scaling=scaling, limits=Limits(ping_timeout_s=4)) as emulator:
        await emulator.wait_ready(DEADLINE_S)
        caller = Caller(emulator, session)
        job = emulator.queue.get(await caller.run(sleep_s=1))
        await until(emulator, lambda: job.status is JobStatus.IN_PROGRESS)
        frozen = emulator.autoscaler.processes[0].members()  # type: ignore[union-attr]
        for process in frozen:
            process.suspend()
        await emulator.wait_job(job.id, DEADLINE_S)
        assert job.status is JobStatus.COMPLETED
        assert len(set(job.deliveries)) == 2
        assert await asyncio.to_thread(survivors, frozen) == []


async def test_killed_worker_is_replaced_and_its_job_done(session: aiohttp.ClientSession) -> None:
    scaling = Scaling(min_workers=1, max_workers=1)
    async with endpoint(session, scaling) as caller:
        await caller.emulator.wait_ready(DEADLINE_S)
        job_id = await caller.run(sleep_s=2)
        job = caller.emulator.queue.get(job_id)
        await until(caller.emulator, lambda: job.status is JobStatus.IN_PROGRESS)
        process = caller.emulator.autoscaler.processes[0]  # type: ignore[union-attr]
        family = process.members()
        assert len(family) >= 2, "the worker and its heartbeat"
        os.kill(process.pid, signal.SIGKILL)
        await caller.emulator.wait_job(job_id, DEADLINE_S)
        assert job.status is JobStatus.COMPLETED
        assert job.requeues == 1
        assert len(set(job.deliveries)) == 2
        assert await asyncio.to_thread(survivors, family) == []


async def test_worker_that_asks_for_it_is_refreshed(session: aiohttp.ClientSession) -> None:
    async with endpoint(session, Scaling(min_workers=1, max_workers=1)) as caller:
        await caller.emulator.wait_ready(DEADLINE_S)
        first = await caller.emulator.wait_job(await caller.run(refresh=True), DEADLINE_S)
        second = await caller.emulator.wait_job(await caller.run(), DEADLINE_S)
        assert first.status is second.status is JobStatus.COMPLETED
        assert first.worker_id != second.worker_id


async def test_workers_that_do_not_boot_are_given_up(session: aiohttp.ClientSession) -> None:
    command = WorkerCommand([sys.executable, "-c", "raise SystemExit(3)"])
    async with Emulator(command=command, scaling=Scaling(min_workers=1)) as emulator:
        with pytest.raises(WorkerBootFailed, match="exit status 3"):
            await emulator.wait_ready(DEADLINE_S)
        assert "exit 3" in await emulator.workers_failed()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_program_leaves_nothing_behind(number: signal.Signals) -> None:
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "emulator", "--workers", "1", "--api-key", "k", "--", *ECHO_WORKER.argv,
        cwd=Path(__file__).parents[2], stdout=asyncio.subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    assert program.stdout is not None
    line = (await program.stdout.readline()).decode()
    fields = dict(field.split("=", 1) for field in line.split() if "=" in field)
    url = f"{fields['url']}/{fields['endpoint']}/runsync"
    headers = {"Authorization": f"Bearer {fields['api_key']}"}
    async with aiohttp.ClientSession() as session, session.post(url, json={"input": {}}, headers=headers) as response:
        assert (await response.json())["status"] == "COMPLETED"
    family = psutil.Process(program.pid).children(recursive=True)
    assert family
    program.send_signal(number)
    assert await asyncio.wait_for(program.wait(), 20) == (-number if number is signal.SIGKILL else 0)
    assert await asyncio.to_thread(survivors, family, within_s=10 if number is signal.SIGKILL else 0) == []


async def test_impatient_end_leaves_nothing_behind() -> None:
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(99)"
    emulator = Emulator(command=WorkerCommand([sys.executable, "-c", stubborn]), scaling=Scaling(min_workers=1))
    await emulator.__aenter__()
    scaler = emulator.autoscaler
    assert scaler is not None
    await until(emulator, lambda: len(scaler.processes) == 1)
    (process,) = scaler.processes
    closing = asyncio.create_task(emulator.__aexit__(None, None, None))
    await until(emulator, lambda: emulator.workers()[0].state == "stopping")
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert await process.wait() < 0, "ended by a signal"
