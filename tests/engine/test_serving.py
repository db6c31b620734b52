"""The whole worker over real SGLang: a document, a killed scheduler, a hung one, SIGTERM."""

import asyncio
import base64
import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator import Job, JobStatus
from tests.engine.conftest import BOOT_DEADLINE_S, JOB_DEADLINE_S, ROOT, assert_completed, scheduler, until_running
from tests.support.single_worker import SingleWorker
from tests.support.survivors import survivors

Worker = Callable[..., Any]


def copies(count: int) -> bytes:
    """The example agreement over and over, `count` pages."""
    import pymupdf

    agreement = pymupdf.open(ROOT / "examples" / "agreement.pdf")
    copy = pymupdf.open()
    while len(copy) < count:
        copy.insert_pdf(agreement, to_page=min(len(agreement), count - len(copy)) - 1)
    return bytes(copy.tobytes())


def document(pages: int) -> dict[str, Any]:
    """A job of so many pages, small ones: enough of them to be interrupted, however fast the machine is."""
    return {"file_base64": base64.b64encode(copies(pages)).decode(), "dpi": 72, "checkpoint": False}


@pytest.fixture
def five_pages(tmp_path: Path) -> Path:
    path = tmp_path / "five.pdf"
    path.write_bytes(copies(5))
    return path


async def client_parse(real: SingleWorker, path: Path, out: Path) -> str:
    """The project's own client, as its users run it. Its exit code tells that noise is not a complete document."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "glmocr_runpod", "parse", str(path), "-o", str(out), "--dpi", "72",
        env={"PATH": "/usr/bin:/bin", "HOME": str(out.parent), "PYTHONPATH": str(ROOT / "client"),
             "RUNPOD_API_URL": real.emulator.base_url, "RUNPOD_API_KEY": real.emulator.api_key,
             "RUNPOD_ENDPOINT_ID": real.emulator.endpoint},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    return (await asyncio.wait_for(process.communicate(), JOB_DEADLINE_S))[0].decode()


async def test_five_pages_then_a_killed_scheduler(worker: Worker, five_pages: Path, tmp_path: Path) -> None:
    async with worker() as real:
        await real.ready(BOOT_DEADLINE_S)
        print(f"ready {time.monotonic() - real.started:.1f} s after the start")
        print(await client_parse(real, five_pages, tmp_path / "out"))
        result = json.loads((tmp_path / "out" / "five.json").read_text())
        assert [page["page"] for page in result["pages"]] == [1, 2, 3, 4, 5]
        regions = [region for page in result["pages"] for region in page["regions"]]
        assert len(regions) >= 5
        assert all(region["requests"] and region["finish_reason"] for region in regions)
        assert result["produced_by"]["engine_version"] == "0.5.17"
        assert result["debug"]["boot"]["gates"]["KV pool"]["found"] == "32768 >= 8192 tokens"
        assert {patch["outcome"] for patch in result["debug"]["boot"]["patches"]} <= {"applied", "not needed"}
        assert "occupancy" in result["debug"]["engine"]

        members = real.members()
        job = await real.submit(**document(200))
        await until_running(real, job)
        killed = time.monotonic()
        scheduler(real).kill()
        await real.emulator.wait_job(job.id, JOB_DEADLINE_S)
        seconds = time.monotonic() - killed
        print(f"scheduler killed: {job.status} after {seconds:.1f} s: {job.error}")
        assert_unavailable(job)
        assert seconds < 15
        assert await real.exit_code(60) == 0
        assert await asyncio.to_thread(survivors, members, within_s=10) == []


def assert_unavailable(job: Job) -> None:
    assert job.status is JobStatus.FAILED
    error = json.loads(job.error)
    assert (error["code"], error["retryable"]) == ("engine_unavailable", True)


async def test_a_hung_scheduler_ends_at_its_deadline(worker: Worker) -> None:
    async with worker(ENGINE_REQUEST_TIMEOUT_S="40", SHUTDOWN_GRACE_S="60") as real:
        await real.ready(BOOT_DEADLINE_S)
        members = real.members()
        job = await real.submit(**document(200))
        await until_running(real, job)
        stopped = time.monotonic()
        scheduler(real).send_signal(signal.SIGSTOP)
        await real.emulator.wait_job(job.id, JOB_DEADLINE_S)
        seconds = time.monotonic() - stopped
        print(f"scheduler stopped: {job.status} after {seconds:.1f} s: {job.error}")
        assert_unavailable(job)
        assert seconds < 40 + 25 + 10
        assert await real.exit_code(90) == 0
        assert await asyncio.to_thread(survivors, members, within_s=10) == []


async def test_sigterm_in_the_middle_of_a_job_drains_and_leaves_nothing(worker: Worker) -> None:
    async with worker(SHUTDOWN_GRACE_S="300") as real:
        await real.ready(BOOT_DEADLINE_S)
        members = real.members()
        job = await real.submit(**document(12))
        await until_running(real, job)
        real.process.send_signal(signal.SIGTERM)
        assert_completed(await real.emulator.wait_job(job.id, JOB_DEADLINE_S))
        assert await real.exit_code(60) == 0
        assert await asyncio.to_thread(survivors, members, within_s=10) == []
