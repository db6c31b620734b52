"""The shutdown runs in processes of its own: it takes signals over and ends the loop it lives in."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SDK_LIKE = """
import asyncio, signal, sys
from handler.shutdown import Shutdown

async def tell():
    print("told", flush=True)

shutdown = Shutdown(grace_s=GRACE, on_stop=tell)
alive = True

def flag(number, frame):
    global alive
    alive = False
    print("sdk told", flush=True)

async def job(seconds):
    shutdown.adopt_current_job()
    print("job begun", flush=True)
    try:
        await asyncio.sleep(seconds)
        print("job posted", flush=True)
    except asyncio.CancelledError:
        print("job cancelled", flush=True)
        raise

async def late():
    while alive:
        await asyncio.sleep(0.01)
    task = asyncio.create_task(job(0))
    await asyncio.wait({task})
    print("late cancelled" if task.cancelled() else "late ran", flush=True)

async def main():
    signal.signal(signal.SIGTERM, flag)
    shutdown.watch()
    hanging_poll = asyncio.create_task(asyncio.sleep(90))
    jobs = [asyncio.create_task(job(s)) for s in JOBS] + [asyncio.create_task(late())]
    await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.gather(hanging_poll, *jobs)

try:
    asyncio.run(main())
except asyncio.CancelledError:
    print("left", flush=True)
"""


def run(grace: float, jobs: list[float]) -> tuple[list[str], int, float]:
    """Lines printed, exit status, seconds from the signal to the end."""
    code = textwrap.dedent(SDK_LIKE).replace("GRACE", str(grace)).replace("JOBS", str(jobs))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if line.strip() == "ready":
                process.send_signal(signal.SIGTERM)
                begun = time.monotonic()
        status = process.wait(20)
    return lines, status, time.monotonic() - begun


def test_an_idle_worker_leaves_at_once_though_its_poll_hangs() -> None:
    lines, status, seconds = run(grace=5, jobs=[])
    assert [line for line in lines if line != "late cancelled"] == ["ready", "sdk told", "told", "left"]
    assert status == 0
    assert seconds < 5


def test_running_jobs_finish_and_are_posted() -> None:
    lines, status, _ = run(grace=10, jobs=[0.3])
    assert "job posted" in lines
    assert lines.index("told") < lines.index("job posted")
    assert lines[-1] == "left"
    assert status == 0


def test_what_cannot_finish_is_cancelled_when_the_grace_is_over() -> None:
    lines, status, seconds = run(grace=0.2, jobs=[60, 0.05])
    assert lines.count("job posted") == 1
    assert lines.count("job cancelled") >= 1
    assert lines[-1] == "left"
    assert status == 0
    assert seconds < 10
