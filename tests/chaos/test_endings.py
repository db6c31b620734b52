"""How jobs end: cancelled, too large, overtaken by their own progress, with text and numbers that nobody can carry."""

import json
import random
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from emulator import Fault, FaultKind, JobStatus
from tests.support.stopper import Stopper
from tests.support.waiting import until
from tests.support.worker_rig import Rig, ledger_of, running_rig

pytestmark = pytest.mark.asyncio(loop_scope="module")


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
    rig.emulator.faults.add(Fault(FaultKind.DELAY, "progress", delay_s=8))
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
    document = await rig.read_by_client(rig.document(number, 1))
    assert [region.text for region in document.regions] == [expected]
    job = rig.emulator.jobs()[-1]
    sent = rig.result(job)
    assert sent is not None
    assert sent["pages"] == json.loads(document.data)["pages"], "its hash was compared on the way"


@pytest.mark.parametrize("double", ["no_numbers", pytest.param("no_scores", marks=pytest.mark.chaos)])
async def test_numbers_that_are_none(tmp_path: Path, double: str) -> None:
    async with running_rig(tmp_path, settings={"LAYOUT_DOUBLE": double}) as rig:
        document = rig.document(21, 2)
        read = await rig.read_by_client(document)
        assert not rig.emulator.jobs()[-1].refused_posts
        assert ledger_of(json.loads(read.data)) == document.ledger()
        warnings = [warning.reason for page in read.pages for warning in page.warnings]
        assert warnings == (["layout_failed"] * 2 if double == "no_numbers" else [])
        assert [region.score for region in read.regions] == [None] * 2


async def test_twelve_megabytes_are_pointed_to(rig: Rig) -> None:
    await rig.engine.control(filler=1_000_000)
    document = rig.document(5, 12)
    job = await rig.emulator.wait_job(await rig.submit(document, formats=["json"]))
    assert job.output["delivery"] == "volume"
    assert job.output["size"] > 12_000_000
    result = rig.result(job)
    assert result is not None
    assert [p["status"] for p in result["pages"]] == ["ok"] * 12


async def test_nothing_outlives_a_worker_that_is_shot(rig: Rig) -> None:
    stopper = Stopper(rig, [], random.Random(1), longest_s=0)
    stop = await stopper.stop("shot", busy=False, number=signal.SIGKILL)
    assert (stop.code, stop.orphans) == (-signal.SIGKILL, [])
