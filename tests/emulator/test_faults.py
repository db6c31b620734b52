import asyncio
from typing import Any

import aiohttp
import pytest

from emulator import Emulator, Fault, FaultKind, JobStatus, ManualClock
from emulator.faults import FaultPlan
from tests.emulator.conftest import Caller, HandWorker
from tests.support.waiting import until


async def codes(caller: Caller, count: int, path: str = "health") -> list[int]:
    return [(await caller.call("GET", path))[0] for _ in range(count)]


async def test_a_storm_passes(caller: Caller, emulator: Emulator) -> None:
    rule = emulator.faults.add(Fault(FaultKind.STATUS, "health", status=429, times=2, skip=1, retry_after=7))
    assert await codes(caller, 5) == [200, 429, 429, 200, 200]
    assert emulator.faults.struck(rule) == 2


async def test_retry_after_is_sent(caller: Caller, emulator: Emulator, session: aiohttp.ClientSession) -> None:
    emulator.faults.add(Fault(FaultKind.STATUS, status=429, retry_after=7))
    async with session.get(f"{emulator.url}/health") as response:
        assert response.headers["Retry-After"] == "7"


@pytest.mark.parametrize("kind", [FaultKind.RESET, FaultKind.LOST_RESPONSE])
async def test_resets(caller: Caller, emulator: Emulator, kind: FaultKind) -> None:
    emulator.faults.add(Fault(kind, "run", times=1))
    with pytest.raises(aiohttp.ClientConnectionError):
        await caller.call("POST", "run", {"input": {}})
    assert len(emulator.jobs()) == (1 if kind is FaultKind.LOST_RESPONSE else 0)
    assert (await caller.call("POST", "run", {"input": {}}))[0] == 200


async def test_half_a_response(caller: Caller, emulator: Emulator) -> None:
    emulator.faults.add(Fault(FaultKind.HALF_RESPONSE, "health"))
    with pytest.raises(aiohttp.ClientPayloadError):
        await caller.call("GET", "health")


async def test_slow_response_comes_byte_by_byte(
    caller: Caller, emulator: Emulator, clock: ManualClock, session: aiohttp.ClientSession
) -> None:
    emulator.faults.add(Fault(FaultKind.SLOW_RESPONSE, "health", delay_s=30))
    headers = {"Authorization": emulator.api_key}
    async with session.get(f"{emulator.url}/health", headers=headers) as response:
        assert await response.content.readexactly(1) == b"{"
        rest = asyncio.create_task(response.read())
        while not rest.done():
            await clock.advance(30)
        assert (await rest).endswith(b"}")
    assert clock.now() >= 30 * 100


async def test_random_faults_are_the_same_every_time() -> None:
    def pattern() -> list[bool]:
        plan = FaultPlan(seed=5)
        plan.add(Fault(FaultKind.RESET, probability=0.5))
        return [plan.strike("run") is not None for _ in range(50)]

    assert pattern() == pattern()
    assert 10 < sum(pattern()) < 40


async def test_refused_result(caller: Caller, worker: HandWorker, emulator: Emulator) -> None:
    job_id, other = await caller.run(), await caller.run()
    emulator.faults.add(Fault(FaultKind.REFUSE_RESULT, "result", job_id=job_id))
    await worker.take_batch(2)
    assert await worker.post(job_id, {"status": "IN_PROGRESS", "output": 1}) == 200
    assert await worker.post(job_id, {"output": 1}) == 400
    assert await worker.post(other, {"output": 1}) == 200
    assert {**await caller.status(job_id), "executionTime": 0} == {
        "id": job_id, "status": "COMPLETED", "delayTime": 0, "executionTime": 0, "workerId": "w1",
    }  # fmt: skip


async def test_delayed_progress_arrives_after_the_result(
    caller: Caller, worker: HandWorker, emulator: Emulator, clock: ManualClock
) -> None:
    job_id = await caller.run()
    await worker.take()
    emulator.faults.add(Fault(FaultKind.DELAY, "progress", delay_s=5))
    late = asyncio.create_task(worker.post(job_id, {"status": "IN_PROGRESS", "output": "progress"}))
    await until(emulator, lambda: emulator.requests["job-done"] == 1)
    await worker.post(job_id, {"output": "result"})
    while not late.done():
        await clock.advance(5)
    assert (await caller.status(job_id))["output"] == "result"
    assert emulator.jobs()[0].progress_posts == ["progress"]


class Admin:
    """The admin routes, as another process uses them."""

    def __init__(self, emulator: Emulator, session: aiohttp.ClientSession) -> None:
        self._base = emulator.url.removesuffix("/v2/local")
        self._session = session
        self._headers = {"Authorization": f"Bearer {emulator.api_key}"}

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self._session.request(
            method, f"{self._base}/admin/{path}", json=body, headers=self._headers
        ) as response:
            return response.status, await response.json()


@pytest.fixture
def admin(emulator: Emulator, session: aiohttp.ClientSession) -> Admin:
    return Admin(emulator, session)


async def test_admin_faults(admin: Admin, caller: Caller) -> None:
    status, answer = await admin.call("POST", "faults", {"kind": "status", "operation": "health", "status": 502})
    assert status == 200
    assert await codes(caller, 1) == [502]
    _, state = await admin.call("GET", "state")
    assert [(f["id"], f["struck"]) for f in state["faults"]] == [(answer["id"], 1)]
    await admin.call("DELETE", f"faults/{answer['id']}")
    assert await codes(caller, 1) == [200]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("faults", {"kind": "earthquake"}),
        ("faults", {"kind": "reset", "sort": 1}),
        ("faults", [1]),
        ("skip", {"seconds": "a while"}),
        ("skip", {"seconds": -1}),
        ("workers/w/signal", {"signal": "SIGNAL"}),
        ("workers/w/signal", {}),
    ],
)
async def test_admin_refuses_nonsense(admin: Admin, path: str, body: Any) -> None:
    assert (await admin.call("POST", path, body))[0] == 400


async def test_admin_skips_time_and_lists_jobs(admin: Admin, caller: Caller, worker: HandWorker) -> None:
    job_id = await caller.run()
    await worker.take()
    await worker.post(job_id, {"output": 1})
    assert (await admin.call("POST", "skip", {"seconds": 1860}))[0] == 200
    assert (await caller.call("GET", f"status/{job_id}"))[0] == 404
    _, state = await admin.call("GET", "state")
    (shown,) = state["jobs"]
    assert (shown["id"], shown["status"], shown["hasOutput"]) == (job_id, JobStatus.COMPLETED, True)
    assert shown["deliveries"] == ["w1"]
    assert state["workers"] == [{"id": "w1", "state": "ready", "pings": 0}]
    assert state["requests"]["run"] == 1


async def test_admin_needs_the_key(emulator: Emulator, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{emulator.url.removesuffix('/v2/local')}/admin/state") as response:
        assert response.status == 401
