"""`make bench-boot`: what the worker adds to the start of its engine, with the embedded one.

Three starts in turn, repeated, each in fresh processes: the engine alone until its /health says yes; the worker until
it asks the (emulated) queue for its first job, without the golden page; the worker with it. Wants a quiet machine.
"""

import argparse
import asyncio
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

from emulator import Emulator
from emulator.fleet import WorkerState
from handler.engine.api import EngineName
from handler.engine.launch import start_engine
from handler.settings import Settings

GOAL_S = 2.0
DEADLINE_S = 240.0
ROOT = Path(__file__).resolve().parents[1]


def engine_alone() -> float:
    """Seconds from the start of the embedded engine's process until it answers."""
    settings = Settings(glmocr_engine=EngineName.RAPIDOCR)
    started = time.monotonic()
    with start_engine(settings) as boot:
        boot.wait_ready()
        return time.monotonic() - started


async def worker(folder: Path, *, golden_page: bool) -> tuple[float, dict[str, float]]:
    """Seconds from the worker's exec until it asks for a job, and its own table of steps."""
    settings = {
        "GLMOCR_ENGINE": "rapidocr",
        "BOOT_GOLDEN_PAGE": "on" if golden_page else "off",
        "RUNPOD_VOLUME_PATH": str(folder),
        "RUNPOD_LOG_LEVEL": "WARN",
    }
    log = folder / "worker.log"
    async with Emulator() as emulator:
        with log.open("wb") as output:
            started = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "handler", cwd=ROOT, stdout=output, stderr=output,
                env={**os.environ, **emulator.worker_env("bench"), **settings},
            )  # fmt: skip
        try:
            await asks_for_a_job(emulator)
            seconds = time.monotonic() - started
        finally:
            process.terminate()
            await process.wait()
    return seconds, steps(log.read_text())


async def asks_for_a_job(emulator: Emulator) -> None:
    """Until the one worker there is has polled the queue."""
    async with asyncio.timeout(DEADLINE_S):
        while all(worker.state is WorkerState.INITIALIZING for worker in emulator.workers()):
            await emulator.fleet.changed.wait()


def steps(log: str) -> dict[str, float]:
    """The boot table in a worker's log."""
    return {name.strip(): float(seconds) for name, seconds in re.findall(r"boot: ([\w ]+?) +([\d.]+) s", log)}


def main() -> None:
    """Measure and print; exit status 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    alone, whole, golden = [], [], []
    for number in range(1, repeats + 1):
        with tempfile.TemporaryDirectory() as name:
            alone.append(engine_alone())
            seconds, table = asyncio.run(worker(Path(name), golden_page=False))
            whole.append(seconds)
            golden.append(asyncio.run(worker(Path(name), golden_page=True))[1]["golden page"])
        print(
            f"{number}: engine alone {alone[-1]:.2f} s, worker {seconds:.2f} s, golden page {golden[-1]:.2f} s; {table}"
        )
    overhead = statistics.median(w - a for w, a in zip(whole, alone, strict=True))
    print(f"engine alone  {statistics.median(alone):6.2f} s (median of {repeats})")
    print(f"worker        {statistics.median(whole):6.2f} s until it asks for a job")
    print(f"overhead      {overhead:6.2f} s, goal {GOAL_S} s: {'met' if overhead <= GOAL_S else 'missed'}")
    print(f"golden page   {statistics.median(golden):6.2f} s, on top of it")
    sys.exit(overhead > GOAL_S)


if __name__ == "__main__":
    main()
