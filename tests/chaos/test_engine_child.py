"""The engine that a worker owns is shot: the worker says so and goes, its jobs are done elsewhere, nothing is lost."""

import asyncio
import json
import sys
from collections.abc import Mapping
from pathlib import Path

import pymupdf
import pytest

from emulator import Job, JobStatus
from tests.support.single_worker import embedded_engine
from tests.support.waiting import until
from tests.support.worker_rig import Document, Rig, running_rig

PAGES = 10
KILLS = 2
SETTINGS = {"GLMOCR_ENGINE": "rapidocr", "OCR_WORKER_CONCURRENCY": "2"}


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_jobs_of_a_lost_engine_are_done_elsewhere(tmp_path: Path) -> None:
    async with running_rig(tmp_path, settings=SETTINGS) as rig:
        documents = [printed(rig, number) for number in (1, 2)]
        jobs = [rig.emulator.queue.get(await rig.submit(document)) for document in documents]
        workers = [await lose_engine(rig, documents, jobs) for _ in range(KILLS)]
        for document, job in zip(documents, jobs, strict=True):
            await rig.emulator.wait_job(job.id, 120)
            result = rig.result(job)
            assert result is not None, job.error
            assert [page["page"] for page in result["pages"]] == list(range(1, PAGES + 1))
            for page in result["pages"]:
                assert line(document.number, page["page"]) in page["regions"][0]["text"]
        resumed = [rig.result(job)["debug"]["checkpoint"]["resumed_pages"] for job in jobs]  # type: ignore[index]
        sys.stdout.write(f"engines of {len(set(workers))} workers shot; pages taken over: {resumed} of {PAGES} each\n")
        assert len(set(workers)) == KILLS
        assert sum(resumed) > 0


async def lose_engine(rig: Rig, documents: list[Document], jobs: list[Job]) -> str:
    """Kill the engine in the middle of both documents, see both jobs fail, send them again. Which worker it was."""
    before = [len(rig.stored_pages(document)) for document in documents]
    while sum(len(rig.stored_pages(document)) for document in documents) < sum(before) + 2:
        assert not all(job.status.final for job in jobs)
        await asyncio.sleep(0.05)
    assert rig.emulator.autoscaler is not None
    (process,) = rig.emulator.autoscaler.processes
    embedded_engine(process.members()).kill()
    running = [job for job in jobs if job.status is JobStatus.IN_PROGRESS]
    await until(rig.emulator, lambda: all(job.status is not JobStatus.IN_PROGRESS for job in running))
    for job in running:
        error: Mapping[str, object] = json.loads(job.error)
        assert (job.status, error["code"], error["retryable"]) == (JobStatus.FAILED, "engine_unavailable", True)
    worker = rig.emulator.fleet.get(process.worker_id)
    assert worker is not None
    assert worker.wants_refresh
    for job in running:
        await rig.call("POST", f"retry/{job.id}")
    return process.worker_id


def line(document: int, page: int) -> str:
    return f"Document {document} page {page}"


def printed(rig: Rig, number: int) -> Document:
    """Pages of a few large lines, for an engine that really reads."""
    pdf = pymupdf.open()
    for page in range(1, PAGES + 1):
        sheet = pdf.new_page(width=420, height=300)
        for row in range(6):
            sheet.insert_text((40, 50 + 40 * row), line(number, page), fontsize=24)
    data = pdf.tobytes()
    pdf.close()
    return Document(number, PAGES, (), data)
