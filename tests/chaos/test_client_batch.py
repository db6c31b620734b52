"""200 files, 5 % of them bad, the batch killed twice: 190 results, 10 explained failures, no duplicate job."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from glmocr_runpod.errors import Exit
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.resume import Stage

from emulator.jobs import Job
from handler.schema import ErrorCode, ErrorInfo
from tests.client.processes import command, environment
from tests.client.rig import Rig, emulated, read

FILES = 200
BAD = frozenset(range(7, FILES, 20))
MANIFEST = "manifest.jsonl"


async def answer(job: Job) -> dict[str, object]:
    await asyncio.sleep(0.3)
    if job.input["filename"].startswith("bad"):
        error = ErrorInfo(code=ErrorCode.DOCUMENT_UNREADABLE, message="No engine can open it.", retryable=False)
        return {"error": error.model_dump_json()}
    return await read(job)


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_200_files_interrupted_twice(tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for number in range(FILES):
        path = source / f"{'bad' if number in BAD else 'good'}-{number:03}.pdf"
        path.write_bytes(b"%PDF-1.7 " + str(number).encode())
    with emulated(tmp_path / "state") as rig, rig.worker(answer):
        for share, stop in ((60, "kill"), (130, "interrupt")):
            _until(rig, source, out, share, stop)
        ended = subprocess.run(
            batch(source, out, "--report", str(tmp_path / "report.csv")),
            env=environment(rig),
            capture_output=True,
            timeout=300,
            check=False,
        )
        assert ended.returncode == Exit.FAILED, ended.stderr.decode()
        jobs = Counter(job.input["filename"] for job in rig.jobs())
    results = [path for path in out.glob("*.json") if json.loads(path.read_text())["document"]]
    failures = [line for line in _report(tmp_path / "report.csv") if ",error," in line]
    sys.stderr.write(f"\n{len(results)} results, {len(failures)} failures, {jobs.total()} jobs of {len(jobs)} files\n")
    assert len(results) == FILES - len(BAD) == 190
    assert len(failures) == len(BAD) == 10
    assert all("document_unreadable,No engine can open it." in line for line in failures)
    assert jobs.total() == len(jobs) == FILES


def batch(source: Path, out: Path, *more: str) -> list[str]:
    return command("batch", str(source), "-o", str(out), "-j", "8", *more)


def _until(rig: Rig, source: Path, out: Path, settled: int, stop: str) -> None:
    """Run the batch until so many files are in the manifest, then end it."""
    process = subprocess.Popen(
        batch(source, out), env=environment(rig), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while _lines(out / MANIFEST) < settled:
            assert process.poll() is None, "the batch ended by itself"
            time.sleep(0.02)
        if stop == "kill":
            _kill_outside_a_post(rig, process)
        else:
            process.send_signal(signal.SIGINT)
        assert process.wait(60) in (-signal.SIGKILL, Exit.INTERRUPTED)
    finally:
        process.kill()
        process.wait()


def _kill_outside_a_post(rig: Rig, process: "subprocess.Popen[bytes]") -> None:
    """Instants inside a POST end as ambiguous (test_client_kill.py); here nothing may."""
    ledger = SqliteLedger(rig.state)
    while True:
        process.send_signal(signal.SIGSTOP)
        if not any(entry.stage is Stage.SENDING for entry in ledger.entries()):
            break
        process.send_signal(signal.SIGCONT)
        time.sleep(0.01)
    process.kill()
    ledger.close()


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _report(path: Path) -> list[str]:
    return path.read_text().splitlines()[1:]
