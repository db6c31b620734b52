"""One document whose client is killed once and called again, and what must hold then."""

import asyncio
import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from glmocr_runpod.errors import Exit
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.resume import Entry, Stage

from emulator.jobs import Job
from tests.client.processes import command, environment
from tests.client.rig import Rig, read

READING_S = 1.0
POST_S = 0.4
PATIENCE_S = 60.0


async def slowly(job: Job) -> dict[str, object]:
    await asyncio.sleep(READING_S)
    return await read(job)


@dataclass(frozen=True)
class Instant:
    """When to kill: so long after the ledger shows a stage; None: after the process was started."""

    stage: Stage | None
    seconds: float


def kill_and_call_again(rig: Rig, document: Path, out: Path, instant: Instant) -> str:
    """What the first run had reached when it died. Fails unless the promise holds."""
    process = parse(rig, document, out)
    if instant.stage is not None:
        _wait_for_stage(rig, document, instant.stage, process)
    time.sleep(instant.seconds)
    process.kill()
    process.communicate()
    entry = _entry(rig, document)
    before = jobs_of(rig, document)
    again = parse(rig, document, out)
    _, said = again.communicate(timeout=PATIENCE_S)
    if again.returncode == Exit.AMBIGUOUS:
        assert entry is not None
        assert entry.stage is Stage.SENDING
        assert jobs_of(rig, document) == before <= 1
        consenting = parse(rig, document, out, "--resubmit", "ambiguous")
        consenting.communicate(timeout=PATIENCE_S)
        assert consenting.returncode == Exit.DEGRADED
        assert jobs_of(rig, document) == before + 1
    else:
        assert again.returncode == Exit.DEGRADED, said.decode()  # the golden result is partial
        assert jobs_of(rig, document) == 1
    (result,) = [path for path in out.iterdir() if path.name == f"{document.stem}.json"]
    assert json.loads(result.read_text())["document"]["filename"] == document.name
    return entry.stage.value if entry else "nothing"


def parse(rig: Rig, document: Path, out: Path, *more: str) -> "subprocess.Popen[bytes]":
    arguments = command("parse", str(document), "-o", str(out), "--json", *more)
    return subprocess.Popen(arguments, env=environment(rig), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def jobs_of(rig: Rig, document: Path) -> int:
    return sum(job.input["filename"] == document.name for job in rig.jobs())


def _wait_for_stage(rig: Rig, document: Path, stage: Stage, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None:
        entry = _entry(rig, document)
        if entry is not None and entry.stage is stage:
            return
        assert time.monotonic() < deadline, f"{document.name} never was {stage}"
        time.sleep(0.005)


def _entry(rig: Rig, document: Path) -> Entry | None:
    ledger = SqliteLedger(rig.state)
    try:
        return next((entry for entry in ledger.entries() if entry.name == document.name), None)
    finally:
        ledger.close()
