import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from handler.debug import DebugReport, JobLines
from handler.engine.api import EngineLoad
from handler.errors import EngineUnavailable, GateError, PasswordRequired
from handler.jobs import DocumentOutcome
from handler.progress import ProgressMeter
from handler.results.delivery import Deliverer
from handler.schema import (
    Counts,
    Degraded,
    DegradedItem,
    DocumentStatus,
    ErrorInfo,
    JobInput,
    JobOutput,
    PageCounts,
    ProducedBy,
    Progress,
    Reason,
)
from handler.settings import Settings
from handler.stages import Stages
from handler.volume import Housekeeper
from handler.worker import Worker

MADE_BY = ProducedBy(worker="0", engine="fake", layout="whole_page")
Read = Callable[[JobInput, ProgressMeter], DocumentOutcome]


class Documents:
    """Reads a document by calling a function."""

    produced_by = MADE_BY

    def __init__(self, read: Read) -> None:
        self._read = read
        self.forever = False

    async def read(self, job: JobInput, job_id: str, meter: ProgressMeter, stages: Stages) -> DocumentOutcome:
        logging.getLogger("handler.test").info("reading for %s", job_id)
        if self.forever:
            await asyncio.Event().wait()
        return self._read(job, meter)


def complete(job: JobInput, meter: ProgressMeter) -> DocumentOutcome:
    return DocumentOutcome(JobOutput(status=DocumentStatus.COMPLETE, markdown="# Hello", produced_by=MADE_BY))


class Bench:
    """A worker around a fake reader, and what it told the outside."""

    def __init__(self, read: Read = complete) -> None:
        self.unfit = 0
        self.sent: list[Progress] = []
        self.golden: Exception | None = None
        self.lines = JobLines()
        logging.getLogger("handler").handlers = [self.lines]
        logging.getLogger("handler").setLevel("INFO")
        self.documents = Documents(read)
        self.worker = Worker(
            documents=self.documents,  # type: ignore[arg-type]
            deliverer=Deliverer(None, None),
            debug=DebugReport({"worker": "0"}, self.lines, lambda seconds: {"name": "fake"}, lambda: EngineLoad(3, 4)),
            progress_to=lambda event: self._send,
            golden_page=self._golden,
            housekeeper=Housekeeper(None, Settings()),
            declare_unfit=self._declare,
        )

    async def _send(self, progress: Progress) -> None:
        self.sent.append(progress)

    async def _golden(self) -> None:
        if self.golden:
            raise self.golden

    def _declare(self) -> None:
        self.unfit += 1

    async def ask(self, job: object, job_id: str = "j1") -> dict[str, Any]:
        return await self.worker.handle({"id": job_id, "input": job})


def error_of(answer: dict[str, Any]) -> ErrorInfo:
    return ErrorInfo.model_validate_json(answer["error"])


async def test_a_result_comes_with_its_debug() -> None:
    answer = await Bench().ask({"file_base64": "aGk="})
    output = JobOutput.model_validate(answer)
    assert output.markdown == "# Hello"
    assert output.debug["boot"] == {"worker": "0"}
    assert "reading for j1" in str(output.debug["log"])


@pytest.mark.parametrize("job", [None, {}, {"file_b64": "x"}, {"file_base64": "x", "formats": ["searchable_pdf"]}])
async def test_bad_input_is_an_error_not_a_crash(job: object) -> None:
    answer = await Bench().ask(job)
    assert not error_of(answer).retryable
    assert "refresh_worker" not in answer
    assert answer["debug"]["boot"] == {"worker": "0"}


async def test_known_errors_keep_their_code_and_details() -> None:
    def refuse(job: JobInput, meter: ProgressMeter) -> DocumentOutcome:
        raise PasswordRequired(filename="a.pdf")

    info = error_of(await Bench(refuse).ask({"file_base64": "aGk="}))
    assert (info.code, info.retryable, info.details) == ("password_required", False, {"filename": "a.pdf"})


async def test_unforeseen_errors_say_nothing_of_their_inside() -> None:
    def burst(job: JobInput, meter: ProgressMeter) -> DocumentOutcome:
        raise RuntimeError("secret detail")

    bench = Bench(burst)
    info = error_of(await bench.ask({"file_base64": "aGk="}))
    assert info.code == "internal_error"
    assert "secret detail" not in info.message
    assert error_of(await bench.ask({"file_base64": "aGk="})).code == "internal_error"


async def test_a_dead_engine_makes_the_worker_unfit_in_both_ways() -> None:
    def dead(job: JobInput, meter: ProgressMeter) -> DocumentOutcome:
        raise EngineUnavailable

    bench = Bench(dead)
    answer = await bench.ask({"file_base64": "aGk="})
    assert error_of(answer).retryable
    assert answer["refresh_worker"] is True
    assert bench.unfit == 1


async def test_nothing_readable_fails_the_job_and_still_carries_the_ledger() -> None:
    def unreadable(job: JobInput, meter: ProgressMeter) -> DocumentOutcome:
        item = DegradedItem(page=1, reason=Reason.RENDER_FAILED, message="no page object")
        output = JobOutput(
            status=DocumentStatus.FAILED,
            counts=Counts(pages=PageCounts(requested=1, failed=1)),
            degraded=Degraded(count=1, items=(item,)),
            produced_by=MADE_BY,
        )
        return DocumentOutcome(output)

    answer = await Bench(unreadable).ask({"file_base64": "aGk="})
    assert error_of(answer).code == "no_page_readable"
    assert "no page object" in str(error_of(answer).details)
    assert JobOutput.model_validate({k: v for k, v in answer.items() if k != "error"}).counts.pages.failed == 1


async def test_cancellation_is_raised() -> None:
    bench = Bench()
    bench.documents.forever = True
    task = asyncio.create_task(bench.ask({"file_base64": "aGk="}))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_progress_ends_before_the_result() -> None:
    def counted(job: JobInput, meter: ProgressMeter) -> DocumentOutcome:
        meter.pages_total = 2
        meter.page_done(5)
        return complete(job, meter)

    bench = Bench(counted)
    await bench.ask({"file_base64": "aGk="})
    told = len(bench.sent)
    await asyncio.sleep(0.01)
    assert len(bench.sent) == told


async def test_warmup_reads_the_golden_page_and_probe_reads_nothing() -> None:
    bench = Bench()
    assert JobOutput.model_validate(await bench.ask({"warmup": True})).document is None
    bench.golden = GateError("golden page: 3 % of its words came back")
    assert "3 %" in error_of(await bench.ask({"warmup": True})).message
    assert JobOutput.model_validate(await bench.ask({"probe": True})).debug["engine"] == {"name": "fake"}


async def test_lines_of_one_job_are_not_in_anothers_answer() -> None:
    bench = Bench()
    answers = await asyncio.gather(*(bench.ask({"file_base64": "aGk="}, f"job-{i}") for i in range(20)))
    for i, answer in enumerate(answers):
        lines = str(answer["debug"]["log"])
        assert f"reading for job-{i}" in lines
        assert lines.count("reading for") == 1


async def test_an_error_about_unspeakable_input_can_still_be_posted() -> None:
    answer = await Bench().ask({"file_base64": "aGk=", "\ud800key": 1})
    assert error_of(answer).code == "unknown_key"
    json.dumps(answer, ensure_ascii=False).encode()
