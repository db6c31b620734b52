"""The other commands, in this process, over the real emulator."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from glmocr_runpod.cli import program
from glmocr_runpod.errors import ClientError, Exit

from tests.client.processes import run
from tests.client.rig import Rig

Invoke = Callable[..., Result]


@pytest.fixture
def invoke(rig: Rig) -> Invoke:
    def call(*arguments: str, **more: object) -> Result:
        return CliRunner().invoke(program, list(arguments), env=rig.environment, **more)  # type: ignore[arg-type]

    return call


@pytest.fixture
def document(tmp_path: Path) -> str:
    path = tmp_path / "contract.pdf"
    path.write_bytes(b"%PDF-1.7 pretend")
    return str(path)


def test_one_step_at_a_time(rig: Rig, invoke: Invoke, document: str, tmp_path: Path) -> None:
    reference = json.loads(invoke("submit", document, "--json").stdout)["reference"]
    assert "1 submitted" in invoke("status").stdout
    assert invoke("result", reference, "-o", str(tmp_path)).exit_code == Exit.FAILED
    with rig.worker():
        assert invoke("wait", reference[:10], "-o", str(tmp_path / "out")).exit_code == Exit.DEGRADED
    assert (tmp_path / "out" / "contract.md").exists()
    assert invoke("result", reference[:10], "-o", str(tmp_path / "two")).exit_code == Exit.DEGRADED
    assert "1 stored" in invoke("status", reference[:8]).stdout
    assert len(rig.jobs()) == 1


def test_files_that_could_not_be_fetched_are_told(rig: Rig, invoke: Invoke, document: str, tmp_path: Path) -> None:
    reference = json.loads(invoke("submit", document, "--json").stdout)["reference"]
    with rig.worker():
        waited = invoke("wait", reference, "-o", str(tmp_path))
    assert "could not be fetched" in waited.stderr
    assert "big.jpg" in waited.stderr
    assert json.loads(invoke("result", reference, "-o", str(tmp_path), "--json").stdout)["absent"] == ["big.jpg"]


def test_cancel(rig: Rig, invoke: Invoke, document: str) -> None:
    reference = json.loads(invoke("submit", document, "--json").stdout)["reference"]
    assert "cancelled" in invoke("cancel", reference).stdout
    assert rig.jobs()[0].status == "CANCELLED"


def test_a_job_id_of_somebody_else(rig: Rig, invoke: Invoke, tmp_path: Path) -> None:
    import base64

    from tests.client.rig import result_for

    job_input = {"file_base64": base64.b64encode(b"%PDF-1.7").decode(), "filename": "theirs.pdf"}
    job = rig.do(lambda: rig.emulator.queue.submit({"input": job_input}, sync=False, max_workers=1, kept_for_s=60))
    rig.do(lambda: rig.emulator.queue.take("w"))
    rig.do(lambda: rig.emulator.queue.finish(job, {"output": result_for(job_input)}))
    assert invoke("wait", job.id, "-o", str(tmp_path)).exit_code == Exit.DEGRADED
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_stdin_to_stdout(rig: Rig) -> None:
    with rig.worker():
        ended = run(rig, "parse", "-", "-o", "-", stdin=b"%PDF-1.7 from a pipe")
        whole = run(rig, "parse", "-", "-o", "-", "--json", stdin=b"%PDF-1.7 from a pipe")
    assert ended.stdout.startswith("# Agreement")
    assert json.loads(whole.stdout)["document"]["filename"] == "stdin"
    assert len(rig.jobs()) == 1


def test_batch(rig: Rig, invoke: Invoke, tmp_path: Path) -> None:
    for name in ("a.pdf", "b.png", "notes.txt"):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_bytes(b"%PDF-1.7 " + name.encode())
    report = tmp_path / "report.csv"
    with rig.worker():
        ended = invoke("batch", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--report", str(report))
    assert ended.exit_code == Exit.DEGRADED, ended.output
    assert "2 of 2 documents, 8 pages" in ended.stdout
    assert len(report.read_text().splitlines()) == 3


def test_doctor(rig: Rig, invoke: Invoke) -> None:
    ended = invoke("doctor")
    assert ended.exit_code == Exit.OK
    assert "key accepted" in ended.stdout
    wrong = CliRunner().invoke(program, ["doctor"], env={**rig.environment, "RUNPOD_API_KEY": "rp_wrong"})
    assert wrong.exit_code == Exit.DENIED
    assert "unauthorized" in wrong.stdout
    assert "rp_wrong" not in wrong.output


def test_completion(invoke: Invoke) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_GLMOCR_RUNPOD_COMPLETE" in invoke("completion", shell).stdout


def test_unknown_references_are_errors(invoke: Invoke) -> None:
    assert isinstance(invoke("wait", "short").exception, ClientError)


def test_every_error_has_a_code_and_an_exit_of_its_own_kind() -> None:
    classes = [ClientError]
    for kind in classes:
        classes += kind.__subclasses__()
    codes = [kind.code for kind in classes]
    assert len(set(codes)) == len(codes)
    assert all(kind.exit != Exit.OK and kind.__doc__ for kind in classes)
