"""Peak memory of the worker and its render processes while it reads 300 pages at 200 dpi.

    python -m tests.awkward.memory [--pages 300]

The layout model and the engine are not in it: every page is one region, and the answers are made up. Memory that
processes share is counted once, page pixels whether mapped or not.
"""

import argparse
import asyncio
import base64
import os
import time
from pathlib import Path

from bench.processes import memory_mb
from handler.engine.api import EngineReply, EngineRequest
from handler.settings import Settings
from tests.awkward.pdfs import drawn, lines
from tests.fakes.engine import FakeEngine, stop
from tests.support.reading_rig import reading_rig

INTERVAL_S = 0.05
LIMIT_MB = 700


async def watch(peaks: list[float]) -> None:
    """Sample until cancelled."""
    while True:
        peaks.append(memory_mb(os.getpid())[0])
        await asyncio.sleep(INTERVAL_S)


def answer(request: EngineRequest) -> EngineReply:
    """Something long enough for a page."""
    return stop(" ".join(f"word{number}" for number in range(400)))


async def measure(pages: int) -> tuple[float, float, float]:
    """MB before the first page, MB at the peak, seconds."""
    document = drawn(*[lines] * pages)
    settings = Settings(runpod_volume_path=Path("/nonexistent"))
    with reading_rig(settings, FakeEngine(answer)) as rig:
        await rig.ask({"file_base64": base64.b64encode(drawn(lines)).decode()})
        before, peaks = memory_mb(os.getpid())[0], [0.0]
        watching = asyncio.create_task(watch(peaks))
        begun = time.monotonic()
        result = await rig.ask({"file_base64": base64.b64encode(document).decode(), "transport": "inline"})
        seconds = time.monotonic() - begun
        watching.cancel()
    assert result["counts"]["pages"]["ok"] == pages, result.get("error")
    return before, max(peaks), seconds


def main() -> int:
    """Measure and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=300)
    pages = parser.parse_args().pages
    before, peak, seconds = asyncio.run(measure(pages))
    print(f"{pages} pages in {seconds:.1f} s: {before:.0f} MB before, {peak:.0f} MB at the peak (limit {LIMIT_MB})")
    return int(peak > LIMIT_MB)


if __name__ == "__main__":
    raise SystemExit(main())
