"""Everything the platform forgets, refuses or gives up on, by its own clock."""

import asyncio
from typing import Any

import aiohttp
import pytest

from emulator import Emulator, Limits, ManualClock, Rate
from tests.emulator.conftest import Caller, HandWorker
from tests.support.waiting import until

MINUTE = 60.0


async def finished(caller: Caller, worker: HandWorker, **body: Any) -> str:
    status, answer = await caller.call("POST", "run", {"input": {}, **body})
    assert status == 200
    await worker.take()
    await worker.post(answer["id"], {"output": 1})
    return str(answer["id"])


async def test_run_results_are_kept_thirty_minutes(caller: Caller, worker: HandWorker, clock: ManualClock) -> None:
    job_id = await finished(caller, worker)
    await clock.advance(30 * MINUTE - 1)
    assert (await caller.status(job_id))["status"] == "COMPLETED"
    await clock.advance(1)
    assert (await caller.call("GET", f"status/{job_id}"))[0] == 404
    assert (await caller.call("POST", f"retry/{job_id}"))[0] == 404


async def test_runsync_results_are_kept_one_minute(caller: Caller, worker: HandWorker, clock: ManualClock) -> None:
    answer = asyncio.create_task(caller.call("POST", "runsync", {"input": {}}))
    job = await worker.take()
    assert job is not None
    await worker.post(job["id"], {"output": 1})
    await answer
    await clock.advance(MINUTE - 1)
    assert (await caller.status(job["id"]))["output"] == 1
    await clock.advance(1)
    assert (await caller.call("GET", f"status/{job['id']}"))[0] == 404


@pytest.mark.parametrize(("query", "waits"), [("", 90.0), ("?wait=5000", 5.0), ("?wait=999999", 300.0)])
async def test_runsync_waits_only_so_long(caller: Caller, clock: ManualClock, query: str, waits: float) -> None:
    answer = asyncio.create_task(caller.call("POST", f"runsync{query}", {"input": {}}))
    await until(caller.emulator, lambda: len(caller.emulator.jobs()) == 1)
    await clock.advance(waits - 0.1)
    assert not answer.done()
    await clock.advance(0.2)
    status, body = await answer
    assert (status, body["status"]) == (200, "IN_QUEUE")


async def test_ttl_covers_queue_and_execution(caller: Caller, worker: HandWorker, clock: ManualClock) -> None:
    _, waiting = await caller.call("POST", "run", {"input": {}, "policy": {"ttl": 10_000}})
    await clock.advance(10)
    assert (await caller.call("GET", f"status/{waiting['id']}"))[0] == 404

    _, running = await caller.call("POST", "run", {"input": {}, "policy": {"executionTimeout": 7_200_000}})
    await clock.advance(23 * 3600)
    await worker.take()
    await clock.advance(3599)
    assert (await caller.status(running["id"]))["status"] == "IN_PROGRESS"
    await clock.advance(1)
    assert (await caller.call("GET", f"status/{running['id']}"))[0] == 404


async def test_result_after_the_ttl_finds_no_job(caller: Caller, worker: HandWorker, clock: ManualClock) -> None:
    _, answer = await caller.call("POST", "run", {"input": {}, "policy": {"ttl": 10_000}})
    await worker.take()
    await clock.advance(10)
    assert await worker.post(answer["id"], {"output": 1}) == 404
    assert await worker.stop_signals() == [answer["id"]]


async def test_status_can_shorten_the_life_of_a_result(caller: Caller, worker: HandWorker, clock: ManualClock) -> None:
    job_id = await finished(caller, worker)
    assert (await caller.call("GET", f"status/{job_id}?ttl=6000"))[0] == 200
    await clock.advance(6)
    assert (await caller.call("GET", f"status/{job_id}"))[0] == 404


@pytest.mark.parametrize(("policy", "limit"), [({}, 600.0), ({"executionTimeout": 20_000}, 20.0)])
async def test_execution_timeout_stops_the_job(
    caller: Caller, worker: HandWorker, clock: ManualClock, policy: dict[str, int], limit: float
) -> None:
    _, answer = await caller.call("POST", "run", {"input": {}, "policy": policy})
    await clock.advance(5)
    await worker.take()
    stopping = asyncio.create_task(worker.stop_signals())
    await clock.advance(limit - 5)
    assert (await caller.status(answer["id"]))["status"] == "IN_PROGRESS"
    stopping.cancel()
    await clock.advance(5)
    assert await worker.stop_signals() == [answer["id"]]
    assert (await caller.status(answer["id"]))["status"] == "TIMED_OUT"
    assert await worker.post(answer["id"], {"output": 1}) == 200
    assert "output" not in await caller.status(answer["id"])


async def test_idle_worker_is_answered_after_the_long_poll(worker: HandWorker, clock: ManualClock) -> None:
    polling = asyncio.create_task(worker.take())
    await until(worker.emulator, lambda: worker.emulator.requests["job-take"] == 1)
    await asyncio.sleep(0)
    await clock.advance(Limits().long_poll_s)
    assert await polling is None


@pytest.mark.parametrize(("operation", "limit"), [("run", 10_000_000), ("runsync?wait=1000", 20_000_000)])
async def test_body_limits(session: aiohttp.ClientSession, operation: str, limit: int) -> None:
    async with Emulator() as emulator:
        caller = Caller(emulator, session)
        frame = len('{"input": {"f": ""}}')
        assert (await caller.call("POST", operation, {"input": {"f": "x" * (limit - frame)}}))[0] == 200
        assert (await caller.call("POST", operation, {"input": {"f": "x" * (limit - frame + 1)}}))[0] == 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"output": "' + b"x" * 10_000_000 + b'"}',
        b'{"output": NaN}',
        b'{"output": -Infinity}',
        b'{"output": "\\ud800"}',
        b'{"output": "\xff"}',
        b'{"output": ',
        b"[1]",
        b"[" * 100_000,
    ],
    ids=["10 MB", "NaN", "infinity", "lone surrogate", "not UTF-8", "cut off", "no object", "deep"],
)
async def test_refused_results_end_the_job_without_output(caller: Caller, worker: HandWorker, body: bytes) -> None:
    job_id = await caller.run()
    await worker.take()
    assert await worker.post(job_id, body) == 400
    shown = await caller.status(job_id)
    assert shown["status"] == "COMPLETED"
    assert "output" not in shown
    assert await worker.post(job_id, {"output": 1}) == 400


async def test_emoji_and_nul_are_results_like_any_other(caller: Caller, worker: HandWorker) -> None:
    job_id = await caller.run()
    await worker.take()
    assert await worker.post(job_id, {"output": "\x00 \N{GRINNING FACE}"}) == 200
    assert (await caller.status(job_id))["output"] == "\x00 \N{GRINNING FACE}"


async def test_rates_are_limited_per_operation(session: aiohttp.ClientSession, clock: ManualClock) -> None:
    limits = Limits(rates={"run": Rate(2), "status": Rate(10, concurrent=1)})
    async with Emulator(clock=clock, limits=limits) as emulator:
        caller = Caller(emulator, session)
        codes = [(await caller.call("POST", "run", {"input": {}}))[0] for _ in range(3)]
        assert codes == [200, 200, 429]
        assert (await caller.call("GET", "status/x"))[0] == 404
        await clock.advance(10)
        assert (await caller.call("POST", "run", {"input": {}}))[0] == 200


async def test_long_queues_refuse_submissions(session: aiohttp.ClientSession, clock: ManualClock) -> None:
    async with Emulator(clock=clock, limits=Limits(queue_free_jobs=2, queue_jobs_per_worker=1)) as emulator:
        caller = Caller(emulator, session)
        codes = [(await caller.call("POST", "run", {"input": {}}))[0] for _ in range(4)]
        assert codes == [200, 200, 200, 429]
