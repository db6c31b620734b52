"""Kill -9 at random instants of a document's life: one result on disk, one job on the endpoint."""

import random
import sys
from collections import Counter
from pathlib import Path

import pytest
from glmocr_runpod.resume import Stage

from emulator.faults import Fault, FaultKind
from tests.client.killing import POST_S, READING_S, Instant, kill_and_call_again, slowly
from tests.client.rig import emulated

SEED = 20261129


def instants() -> list[Instant]:
    """Forty, over the whole life: starting, before and inside the POST, polling, writing."""
    drawn = random.Random(SEED)
    return [
        *(Instant(None, drawn.uniform(0, 1.5)) for _ in range(6)),
        *(Instant(Stage.SENDING, drawn.uniform(0, POST_S)) for _ in range(10)),
        *(Instant(Stage.SUBMITTED, drawn.uniform(0, READING_S + 1.5)) for _ in range(14)),
        *(Instant(Stage.STORED, drawn.uniform(0, 0.06)) for _ in range(10)),
    ]


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_forty_instants(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    with emulated(tmp_path / "state") as rig, rig.worker(slowly):
        rig.do(lambda: rig.emulator.faults.add(Fault(FaultKind.DELAY, "run", delay_s=POST_S)))
        for number, instant in enumerate(instants()):
            document = tmp_path / f"document-{number}.pdf"
            document.write_bytes(b"%PDF-1.7 " + str(number).encode())
            seen[kill_and_call_again(rig, document, tmp_path / "out", instant)] += 1
    sys.stderr.write(f"\nkill -9 at {seen.total()} instants: {dict(seen)}\n")
    assert seen.total() == 40
    assert {"sending", "submitted", "stored"} <= seen.keys()
