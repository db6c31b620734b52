"""The engine dies while jobs wait in the queue: what was taken fails and can be repeated, the rest is left alone."""

import asyncio
import base64
import json
from pathlib import Path

import pytest

from emulator import JobStatus
from handler.engine.server import free_port
from tests.support.single_worker import ROOT, embedded_engine, single_worker
from tests.support.survivors import survivors
from tests.support.waiting import until

QUEUED = 20
AT_ONCE = 2


@pytest.mark.timeout(300)
async def test_only_jobs_already_taken_fail(tmp_path: Path) -> None:
    settings = {
        "GLMOCR_ENGINE": "rapidocr",
        "GLMOCR_LAYOUT": "whole_page",
        "SGLANG_PORT": str(free_port(0)),
        "BOOT_GOLDEN_PAGE": "off",
        "OCR_WORKER_CONCURRENCY": str(AT_ONCE),
        "RENDER_PROCESSES": "1",
        "RUNPOD_VOLUME_PATH": str(tmp_path),
    }
    pdf = base64.b64encode((ROOT / "examples" / "scan.pdf").read_bytes()).decode()
    async with single_worker(settings, tmp_path) as worker:
        await worker.ready(120)
        members = worker.members()
        jobs = [await worker.submit(file_base64=pdf, checkpoint=False) for _ in range(QUEUED)]
        await until(worker.emulator, lambda: sum(j.status is JobStatus.IN_PROGRESS for j in jobs) == AT_ONCE)
        done = sum(job.status.final for job in jobs)
        embedded_engine(members).kill()
        assert await worker.exit_code(60) == 0
        failed = [job for job in jobs if job.status is JobStatus.FAILED]
        assert 1 <= len(failed) <= AT_ONCE
        for job in failed:
            error = json.loads(job.error)
            assert (error["code"], error["retryable"]) == ("engine_unavailable", True)
        waiting = [job for job in jobs if job.status is JobStatus.IN_QUEUE]
        assert len(waiting) >= QUEUED - AT_ONCE - done
        assert await asyncio.to_thread(survivors, members, within_s=10) == []
