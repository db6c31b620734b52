import asyncio
from typing import Any

import aiohttp
import pytest

from emulator import Emulator, ManualClock
from tests.emulator.conftest import Caller, HandWorker


async def test_job_goes_from_queue_to_result(caller: Caller, worker: HandWorker, clock: ManualClock) -> None:
    job_id = await caller.run(a=1)
    assert await caller.status(job_id) == {"id": job_id, "status": "IN_QUEUE"}

    await clock.advance(2.0)
    assert await worker.take() == {"id": job_id, "input": {"a": 1}}
    await clock.advance(3.0)
    running = await caller.status(job_id)
    assert running == {
        "id": job_id, "status": "IN_PROGRESS", "delayTime": 2000, "executionTime": 3000, "workerId": "w1",
    }  # fmt: skip

    assert await worker.post(job_id, {"output": {"b": 2}}) == 200
    await clock.advance(9.0)
    done = await caller.status(job_id)
    assert (done["status"], done["output"], done["executionTime"]) == ("COMPLETED", {"b": 2}, 3000)


async def test_waiting_worker_gets_the_job_at_once(caller: Caller, worker: HandWorker) -> None:
    polling = asyncio.create_task(worker.take())
    job_id = await caller.run()
    assert await polling == {"id": job_id, "input": {}}


async def test_runsync_returns_the_result(caller: Caller, worker: HandWorker) -> None:
    answer = asyncio.create_task(caller.call("POST", "runsync", {"input": {}}))
    job = await worker.take()
    assert job is not None
    assert job["id"].startswith("sync-")
    await worker.post(job["id"], {"output": 7})
    status, body = await answer
    assert (status, body["status"], body["output"]) == (200, "COMPLETED", 7)


async def test_error_with_output_is_failed_and_keeps_both(caller: Caller, worker: HandWorker) -> None:
    job_id = await caller.run()
    await worker.take()
    await worker.post(job_id, {"output": {"debug": {}}, "error": "no"})
    shown = await caller.status(job_id)
    assert (shown["status"], shown["error"], shown["output"]) == ("FAILED", "no", {"debug": {}})


@pytest.mark.parametrize(
    ("key", "path", "expected"),
    [
        ("Bearer wrong", "status/x", 401),
        ("", "status/x", 401),
        (None, "status/nobody", 404),
        (None, "../other/health", 404),
    ],
)
async def test_refused_requests(
    caller: Caller, session: aiohttp.ClientSession, emulator: Emulator, key: str | None, path: str, expected: int
) -> None:
    headers = {"Authorization": emulator.api_key if key is None else key}
    async with session.get(f"{emulator.url}/{path}", headers=headers) as response:
        assert response.status == expected


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        {"input": "text"},
        {"input": {}, "policy": {"executionTimeout": 5000}},
        {"input": {}, "policy": {"ttl": 9999}},
        {"input": {}, "policy": {"ttl": 604_800_001}},
        {"input": {}, "policy": {"ttl": "soon"}},
    ],
)
async def test_malformed_jobs_are_refused(caller: Caller, body: Any) -> None:
    status, _ = await caller.call("POST", "run", body)
    assert status == 400
    assert caller.emulator.jobs() == []


async def test_health_counts(caller: Caller, worker: HandWorker) -> None:
    first = await caller.run()
    await caller.run()
    await worker.take()
    await worker.post(first, {"error": "x"})
    await caller.run()
    await worker.take()
    _, health = await caller.call("GET", "health")
    assert health["jobs"] == {"completed": 0, "failed": 1, "inProgress": 1, "inQueue": 1, "retried": 0}
    assert health["workers"]["running"] == 1
