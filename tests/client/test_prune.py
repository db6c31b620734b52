"""Forgetting: what was settled long ago goes, what may still cost money or be fetched stays."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from glmocr_runpod import Client
from glmocr_runpod.cli import program
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.plan import Carry, Part, Plan
from glmocr_runpod.prune import plan_pruning, prune
from glmocr_runpod.resume import Entry, Stage

from tests.client.rig import Rig

LATER = 60.0
"""Everything here is made now, and looked at as if this much later."""


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(tmp_path / "state")
    yield ledger
    ledger.close()


def add(ledger: SqliteLedger, name: str, *stages: Stage, kept: bool = False) -> None:
    """A document with one job per stage."""
    parts = []
    for number, stage in enumerate(stages):
        content = f"{name}-{number}"
        ledger.put(Entry(key=f"key-{content}", content_key=content, name=name, stage=stage, idempotency_key="i"))
        if stage is Stage.STORED:
            ledger.save(f"key-{content}", b"result")
        if kept:
            ledger.save(f"digest-{content}", b"part")
        parts.append(Part(content_key=content, digest=f"digest-{content}", carry=Carry.INLINE, pages=None, kept=kept))
    plan = Plan(name=name, digest=name, size=1, content_key=name, parts=tuple(parts))
    ledger.put_plan(f"key-{name}", msgspec.json.encode(plan))


def forget(ledger: SqliteLedger, *also: Stage, before: float | None = None) -> list[str]:
    pruning = plan_pruning(ledger, time.time() + LATER if before is None else before, also)
    prune(ledger, pruning)
    return [document.name for document in pruning.documents]


def files(ledger: SqliteLedger) -> set[str]:
    return {file.name for file in ledger.files()}


@pytest.mark.parametrize("stage", [Stage.STORED, Stage.FAILED, Stage.CANCELLED, Stage.INTENDED])
def test_settled_documents_go_with_all_that_is_theirs(ledger: SqliteLedger, stage: Stage) -> None:
    add(ledger, "a", stage, Stage.STORED, kept=True)
    assert forget(ledger) == ["a"]
    assert (ledger.entries(), ledger.plans(), files(ledger)) == ([], [], set())


@pytest.mark.parametrize("stage", [Stage.SUBMITTED, Stage.SENDING, Stage.AMBIGUOUS, Stage.LOST])
def test_one_job_that_may_cost_money_keeps_its_document(ledger: SqliteLedger, stage: Stage) -> None:
    add(ledger, "a", stage, Stage.STORED, kept=True)
    assert forget(ledger, Stage.SUBMITTED, Stage.SENDING) == []
    assert len(ledger.entries()) == 2
    assert files(ledger) == {"key-a-1", "digest-a-0", "digest-a-1"}


def test_lost_and_ambiguous_ones_go_when_named(ledger: SqliteLedger) -> None:
    add(ledger, "a", Stage.LOST)
    add(ledger, "b", Stage.AMBIGUOUS)
    assert forget(ledger, Stage.LOST) == ["a"]
    assert forget(ledger, Stage.AMBIGUOUS) == ["b"]


def test_what_changed_lately_stays(ledger: SqliteLedger) -> None:
    add(ledger, "a", Stage.STORED)
    assert forget(ledger, before=time.time() - LATER) == []
    assert files(ledger) == {"key-a-0"}


def test_a_job_that_another_document_needs_stays(ledger: SqliteLedger) -> None:
    add(ledger, "a", Stage.STORED)
    add(ledger, "b", Stage.SUBMITTED)
    [(_, data)] = [(key, plan) for key, plan in ledger.plans() if key == "key-a"]
    shared = msgspec.json.decode(data, type=Plan).parts
    other = msgspec.json.decode(dict(ledger.plans())["key-b"], type=Plan)
    ledger.put_plan("key-b", msgspec.json.encode(msgspec.structs.replace(other, parts=other.parts + shared)))
    assert forget(ledger) == ["a"]
    assert {entry.name for entry in ledger.entries()} == {"a", "b"}
    assert files(ledger) == {"key-a-0"}


def test_leftovers_and_adopted_jobs_go(ledger: SqliteLedger) -> None:
    ledger.put(Entry(key="k", content_key="job:1", name="1", stage=Stage.STORED, idempotency_key=""))
    for name in ("k", "k.undelivered", ".x.1234.part", "orphan"):
        ledger.save(name, b"x")
    assert forget(ledger) == ["1"]
    assert files(ledger) == set()


def test_what_changes_meanwhile_stays(ledger: SqliteLedger) -> None:
    add(ledger, "a", Stage.FAILED, Stage.STORED)
    pruning = plan_pruning(ledger, time.time() + LATER)
    [first] = [entry for entry in ledger.entries() if entry.stage is Stage.STORED]
    ledger.put(msgspec.structs.replace(first, execution_ms=5))
    prune(ledger, pruning)
    assert [entry.key for entry in ledger.entries()] == [first.key]
    assert files(ledger) == {first.key}


def test_the_command_shows_first_and_forgets_with_yes(rig: Rig) -> None:
    def invoke(*arguments: str) -> str:
        return CliRunner().invoke(program, ["prune", *arguments], env=rig.environment).output

    with Client(config=rig.config) as client, rig.worker():
        client.parse(b"%PDF-1.7", name="a.pdf")
    assert "0 documents" in invoke()
    shown = invoke("--older-than", "0")
    assert "1 stored" in shown
    assert "a.pdf" in shown
    assert "--yes does it" in shown
    [blob] = (rig.state / "blobs").iterdir()
    assert blob.exists()
    old = time.time() - 5
    os.utime(blob, (old, old))
    [line, summary] = invoke("--older-than", "0", "--yes", "--json").splitlines()
    assert json.loads(line)["name"] == "a.pdf"
    assert "1 documents, 1 files" in summary
    assert not blob.exists()
    with Client(config=rig.config) as client, rig.worker():
        client.parse(b"%PDF-1.7", name="a.pdf")
    assert len(rig.jobs()) == 2
