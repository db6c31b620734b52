"""A short document does not wait for long ones."""

import asyncio
import statistics
import sys
import time
from pathlib import Path

import pytest

from emulator import JobStatus
from tests.support.worker_rig import Rig, running_rig

JOBS = 64
PROBES = 5
MOST_SLOWER = 3.0


async def latencies(rig: Rig, first_number: int) -> list[float]:
    """Seconds from submission to result of one-page documents, one after the other."""
    seconds = []
    for number in range(first_number, first_number + PROBES):
        document = rig.document(number, 1)
        begun = time.monotonic()
        job = await rig.emulator.wait_job(await rig.submit(document, checkpoint=False), 300)
        seconds.append(time.monotonic() - begun)
        assert job.status is JobStatus.COMPLETED
    return seconds


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_one_page_beside_three_hundred(tmp_path: Path) -> None:
    settings = {"OCR_WORKER_CONCURRENCY": str(JOBS + 4), "RENDER_PROCESSES": "2"}
    async with running_rig(tmp_path, seconds=0.5, settings=settings) as rig:
        await latencies(rig, 1)
        alone = statistics.median(await latencies(rig, 101))
        long_ones = [rig.document(200, 300), *(rig.document(n, 20) for n in range(201, 200 + JOBS - 1))]
        jobs = await asyncio.gather(*(rig.submit(document) for document in long_ones))
        await rig.engine.until_asked(2 * PROBES + 4 * JOBS)
        beside = statistics.median(await latencies(rig, 301))
        sys.stdout.write(f"one page alone {alone:.2f} s, beside {JOBS - 1} long jobs {beside:.2f} s\n")
        assert len(rig.emulator.queue.running()) > JOBS // 2, "the long ones were still running"
        await asyncio.gather(*(rig.call("POST", f"cancel/{job}") for job in jobs))
        assert beside <= MOST_SLOWER * alone
