"""The asynchronous client over the real emulator: the same promises through the other shell."""

import asyncio
from pathlib import Path

import pytest
from glmocr_runpod import Consent
from glmocr_runpod.aio import AsyncClient
from glmocr_runpod.batch import BatchItem
from glmocr_runpod.errors import Ambiguous, JobFailed
from glmocr_runpod.events import Event, Submitted
from glmocr_runpod.kit import Kit
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.resume import Entry, Stage

from emulator.faults import Fault, FaultKind
from handler.schema import ErrorCode, ErrorInfo
from tests.client import scans
from tests.client.reading import Reading
from tests.client.rig import Rig

DOCUMENT = b"%PDF-1.7 pretend"


async def test_parse_and_stored_result(rig: Rig) -> None:
    with rig.worker():
        async with AsyncClient(config=rig.config) as client:
            first = await client.parse(DOCUMENT, name="a.pdf")
            again = await client.parse(DOCUMENT, name="a.pdf")
    assert first.output == again.output
    assert len(rig.jobs()) == 1


async def test_the_blocking_clients_state_is_shared(rig: Rig) -> None:
    from glmocr_runpod import Client

    with Client(config=rig.config) as blocking:
        reference = blocking.submit(DOCUMENT, name="a.pdf")
    with rig.worker():
        async with AsyncClient(config=rig.config) as client:
            assert (await client.attach(reference)).name == "a.pdf"
            assert (await client.result(reference)) is not None
    assert len(rig.jobs()) == 1


async def test_a_cancelled_wait_goes_on_later(rig: Rig) -> None:
    submitted = asyncio.Event()

    def observer(event: Event) -> None:
        if isinstance(event, Submitted):
            submitted.set()

    async with AsyncClient(config=rig.config) as client:
        waiting = asyncio.create_task(client.parse(DOCUMENT, name="a.pdf", observer=observer))
        await submitted.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with rig.worker():
            await client.parse(DOCUMENT, name="a.pdf")
    assert len(rig.jobs()) == 1


async def test_a_submission_that_is_cancelled_on_its_way_is_noted(rig: Rig) -> None:
    sending = asyncio.Event()

    class Watched(SqliteLedger):
        def put(self, entry: Entry) -> None:
            super().put(entry)
            if entry.stage is Stage.SENDING:
                sending.set()

    rig.do(lambda: rig.emulator.faults.add(Fault(FaultKind.DELAY, "run", delay_s=0.3, times=1)))
    async with AsyncClient(config=rig.config, ledger=Watched(rig.state)) as client:
        waiting = asyncio.create_task(client.parse(DOCUMENT, name="a.pdf"))
        await sending.wait()
        while not waiting.done():
            waiting.cancel()
            await asyncio.sleep(0.01)
        assert waiting.cancelled()
        assert [entry.stage for entry in client.ledger.entries()] == [Stage.SUBMITTED]
        with rig.worker():
            await client.parse(DOCUMENT, name="a.pdf")
    assert len(rig.jobs()) == 1


async def test_an_ambiguous_submission(rig: Rig) -> None:
    rig.do(lambda: rig.emulator.faults.add(Fault(FaultKind.LOST_RESPONSE, "run", times=1)))
    async with AsyncClient(config=rig.config) as client:
        with pytest.raises(Ambiguous):
            await client.parse(DOCUMENT)
        with pytest.raises(Ambiguous):
            await client.parse(DOCUMENT)
    assert len(rig.jobs()) == 1
    with rig.worker():
        async with AsyncClient(config=rig.config, resubmit={Consent.AMBIGUOUS}) as client:
            await client.parse(DOCUMENT)
    assert len(rig.jobs()) == 2


async def test_parts_run_side_by_side(rig: Rig) -> None:
    scan = scans.scan(50, range(1, 6), grain=15)
    with rig.worker(Reading()):
        async with AsyncClient(config=rig.config, kit=Kit(body_limit=len(scan) // 2)) as client:
            document = await client.parse(scan, name="scan.pdf")
    assert [page.regions[0].text for page in document.pages] == [f"page {n}" for n in range(1, 6)]


async def test_many_at_once(rig: Rig, tmp_path: Path) -> None:
    async def answer(job):  # type: ignore[no-untyped-def]
        if job.input["filename"] == "3.pdf":
            error = ErrorInfo(code=ErrorCode.DOCUMENT_UNREADABLE, message="no", retryable=False)
            return {"error": error.model_dump_json()}
        from tests.client.rig import read

        return await read(job)

    paths = [tmp_path / f"{number}.pdf" for number in range(8)]
    for path in paths:
        path.write_bytes(b"%PDF-1.7 " + path.name.encode())
    with rig.worker(answer):
        async with AsyncClient(config=rig.config) as client:
            items = await client.parse_many(paths, tmp_path / "out", concurrency=3)
            with pytest.raises(JobFailed):
                await client.parse(paths[3])
    assert [item.ok for item in items] == [number != 3 for number in range(8)]
    assert len(rig.jobs()) == 8


async def test_what_breaks_a_batch_off_is_raised_as_itself(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(DOCUMENT)

    def broken(item: BatchItem) -> None:
        raise ZeroDivisionError

    with rig.worker():
        async with AsyncClient(config=rig.config) as client:
            with pytest.raises(ZeroDivisionError):
                await client.parse_many([path], tmp_path / "out", done=broken)


async def test_cancel_and_health(rig: Rig) -> None:
    async with AsyncClient(config=rig.config) as client:
        reference = await client.submit(DOCUMENT)
        assert (await client.health())["jobs"]["inQueue"] == 1
        assert await client.result(reference) is None
        (entry,) = await client.cancel(reference)
    assert entry.stage == "cancelled"
    assert rig.jobs()[0].status == "CANCELLED"
