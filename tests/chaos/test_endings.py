"""How jobs end: cancelled, stopped, too large, overtaken by their own progress."""

import asyncio
import random
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from emulator import Fault, FaultKind, JobStatus
from emulator.processes import WorkerProcess
from tests.support.waiting import until
from tests.support.worker_rig import Rig, ledger_of, running_rig

pytestmark = pytest.mark.asyncio(loop_scope="module")
GRACE_S = 3.0
ORPHAN_S = 5.0
"""What has not ended so long after its worker is an orphan; a forkserver may still be importing when it is stopped."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    options = {"late_progress_hides_result": True}
    async with running_rig(tmp_path_factory.mktemp("endings"), emulator_options=options) as rig:
        yield rig


@pytest_asyncio.fixture(loop_scope="module")
async def rig(shared_rig: Rig) -> AsyncIterator[Rig]:
    yield shared_rig
    shared_rig.emulator.faults.clear()
    await shared_rig.engine.behave_again()


async def test_cancel_aborts_in_the_engine_and_the_worker_serves_on(rig: Rig) -> None:
    await rig.engine.control(seconds=60, reset=True)
    job_id = await rig.submit(rig.document(1, 20))
    await rig.engine.until_asked(16)
    cancelled = time.time()
    await rig.call("POST", f"cancel/{job_id}")
    record = await rig.engine.until_idle()
    assert record["aborted"] >= 16
    assert record["last_abort"] - cancelled <= 2.0

    await rig.engine.behave_again()
    document = rig.document(2, 3)
    assert ledger_of(await rig.deliver(document)) == document.ledger()
    assert len(rig.emulator.workers()) == 1


async def test_progress_that_is_late_never_hides_the_result(rig: Rig) -> None:
    rig.emulator.faults.add(Fault(FaultKind.DELAY, "progress", delay_s=3))
    await rig.engine.control(seconds=3)
    document = rig.document(3, 4)
    job = await rig.emulator.wait_job(await rig.submit(document))
    await until(rig.emulator, lambda: not rig.emulator.open_requests["job-done"])
    assert job.progress_posts
    assert job.status is JobStatus.COMPLETED
    result = rig.result(job)
    assert result is not None
    assert ledger_of(result) == document.ledger()


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        (11, "emoji \N{GRINNING FACE} e\u0301 \u202e", "emoji \N{GRINNING FACE} e\u0301 \u202e"),
        (12, "nul \x00 inside", "nul \x00 inside"),
        (13, "lone \ud83d surrogate", "lone \N{REPLACEMENT CHARACTER} surrogate"),
    ],
    ids=["emoji", "NUL", "lone surrogate"],
)
async def test_text_that_stores_and_encoders_choke_on(rig: Rig, number: int, text: str, expected: str) -> None:
    await rig.engine.control(text=text)
    result = await rig.deliver(rig.document(number, 1))
    assert result["pages"][0]["regions"][0]["text"] == expected


async def test_twelve_megabytes_are_pointed_to(rig: Rig) -> None:
    await rig.engine.control(filler=1_000_000)
    document = rig.document(5, 12)
    job = await rig.emulator.wait_job(await rig.submit(document, formats=["json"]))
    assert job.output["delivery"] == "volume"
    assert job.output["size"] > 12_000_000
    result = rig.result(job)
    assert result is not None
    assert [p["status"] for p in result["pages"]] == ["ok"] * 12


@dataclass(frozen=True)
class Stop:
    """How a worker ended after SIGTERM."""

    code: int
    seconds: float
    orphans: list[str]
    jobs: int
    """It had so many at that moment."""


async def stop_one(rig: Rig, worker_id: str, pause_s: float) -> Stop:
    """Start a worker beside the emulator's own, stop it some time after its first poll."""
    process = await WorkerProcess.start(rig.command, worker_id, rig.emulator.worker_env(worker_id))
    worker = rig.emulator.fleet.get(worker_id)
    assert worker is not None
    await until(rig.emulator, lambda: worker.state == "ready")
    await asyncio.sleep(pause_s)
    family, jobs = process.members(), len(rig.emulator.queue.running(worker_id))
    begun = time.monotonic()
    process.signal(signal.SIGTERM)
    code = await process.wait()
    seconds = time.monotonic() - begun
    rig.emulator.fleet.gone(worker)
    _, left = await asyncio.to_thread(psutil.wait_procs, family, timeout=ORPHAN_S)
    orphans = [" ".join(p.cmdline()) for p in left if p.status() != psutil.STATUS_ZOMBIE]
    await process.kill()
    return Stop(code, seconds, orphans, jobs)


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_sigterm_at_thirty_random_instants(tmp_path: Path) -> None:
    chance = random.Random(4)
    async with running_rig(tmp_path, seconds=1.5, settings={"SHUTDOWN_GRACE_S": str(GRACE_S)}) as rig:
        documents = [rig.document(n, 20) for n in range(1, 31)]
        deliveries = asyncio.gather(*(rig.deliver(document, tries=60) for document in documents))

        async def stop_some(name: str) -> list[Stop]:
            return [await stop_one(rig, f"{name}{n}", chance.uniform(0, 3)) for n in range(15)]

        stops = [stop for some in await asyncio.gather(stop_some("a"), stop_some("b")) for stop in some]
        results = await deliveries
        for document, result in zip(documents, results, strict=True):
            assert ledger_of(result) == document.ledger()
        slowest = max(stop.seconds for stop in stops)
        requeued = sum(job.requeues for job in rig.emulator.jobs())
        busy = sum(stop.jobs > 0 for stop in stops)
        sys.stdout.write(
            f"{len(stops)} stops, {busy} of them busy, slowest {slowest:.1f} s, {requeued} jobs moved on\n"
        )
        assert [stop for stop in stops if stop.orphans] == []
        assert {stop.code for stop in stops} == {0}
        assert slowest <= GRACE_S + 2
        assert requeued > 0
