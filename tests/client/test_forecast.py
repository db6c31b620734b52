"""What a call would do, told without doing it."""

import json
import random
from pathlib import Path

import pytest
from click.testing import CliRunner
from glmocr_runpod import Client, Consent
from glmocr_runpod.aio import AsyncClient
from glmocr_runpod.cli import program
from glmocr_runpod.errors import Ambiguous, Exit, TooLarge
from glmocr_runpod.kit import Kit

from emulator.faults import Fault, FaultKind
from tests.client import scans
from tests.client.reading import Reading
from tests.client.rig import Rig

DOCUMENT = b"%PDF-1.7 pretend"


@pytest.fixture(scope="module")
def scan() -> bytes:
    return scans.scan(50, range(1, 8), grain=15)


def test_a_new_document_then_a_live_one_then_a_stored_one(rig: Rig) -> None:
    with Client(config=rig.config) as client:
        new = client.plan(DOCUMENT, name="a.pdf")
        assert (new.jobs, new.to_send, new.known, new.carried) == (1, 1, {}, {"inline": 1})
        assert client.ledger.plans() == []
        assert rig.jobs() == []
        assert client.submit(DOCUMENT, name="a.pdf") == new.reference
        live = client.plan(DOCUMENT)
        assert (live.to_send, live.known) == (0, {"submitted": 1})
        with rig.worker():
            client.parse(DOCUMENT)
        assert client.plan(DOCUMENT).known == {"stored": 1}
    with Client(config=rig.config, resubmit={Consent.STORED}) as client:
        assert client.plan(DOCUMENT).to_send == 1
    assert len(rig.jobs()) == 1


def test_a_divided_document_is_counted_and_nothing_is_kept(rig: Rig, scan: bytes) -> None:
    with Client(config=rig.config, kit=Kit(body_limit=len(scan) // 2)) as client, rig.worker(Reading()):
        seen = client.plan(scan, name="scan.pdf")
        assert not list((rig.state / "blobs").iterdir())
        client.parse(scan, name="scan.pdf")
        again = client.plan(scan)
    assert (seen.pages, seen.jobs, seen.to_send) == (7, len(rig.jobs()), len(rig.jobs()))
    assert [step.step for step in seen.transport] == ["gzip", "split"]
    assert (again.to_send, again.known) == (0, {"stored": seen.jobs})


def test_an_ambiguous_document_is_undecided_without_consent(rig: Rig) -> None:
    rig.do(lambda: rig.emulator.faults.add(Fault(FaultKind.LOST_RESPONSE, "run", times=1)))
    with Client(config=rig.config) as client:
        with pytest.raises(Ambiguous):
            client.parse(DOCUMENT)
        seen = client.plan(DOCUMENT)
        assert (seen.to_send, seen.undecided) == (0, 1)
    with Client(config=rig.config, resubmit={Consent.AMBIGUOUS}) as client:
        assert client.plan(DOCUMENT).to_send == 1


async def test_from_asyncio(rig: Rig) -> None:
    async with AsyncClient(config=rig.config) as client:
        assert (await client.plan("https://example.org/a.pdf")).carried == {"url": 1}
        assert (await client.plan("https://example.org/a.pdf")).pages is None


def test_what_nothing_carries_is_said_before_it_is_tried(rig: Rig) -> None:
    with Client(config=rig.config, kit=Kit(body_limit=10_000)) as client, pytest.raises(TooLarge):
        client.plan(random.Random(1).randbytes(20_000))


def test_the_command(rig: Rig, scan: bytes, tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(scan)

    def invoke(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(program, ["plan", *arguments], env=rig.environment)
        return result.exit_code, result.output

    code, said = invoke(str(path), "--pages-per-job", "3")
    assert code == 0
    assert "3 inline" in said
    assert "3 jobs would be sent" in said
    code, said = invoke(str(path), str(tmp_path / "none.pdf"), "--json")
    assert code == Exit.USAGE
    assert "none.pdf: source:" in said
    assert json.loads(next(line for line in said.splitlines() if line.startswith("{")))["pages"] == 7
    assert rig.jobs() == []
