"""`glmocr-runpod parse` as a process, over the real emulator."""

import json
from pathlib import Path

from tests.client.processes import run
from tests.client.rig import Rig


def test_writes_the_result_and_says_where(rig: Rig, tmp_path: Path) -> None:
    document = tmp_path / "contract.pdf"
    document.write_bytes(b"%PDF-1.7 pretend")
    with rig.worker():
        ended = run(rig, "parse", str(document), "-o", str(tmp_path / "out"))
    assert ended.returncode == 3, ended.stderr  # the golden result is partial
    written = json.loads((tmp_path / "out" / "contract.json").read_text())
    assert written["document"]["filename"] == "contract.pdf"
    assert (tmp_path / "out" / "contract.md").read_text() == written["markdown"].replace(
        "](figures/", "](contract.figures/"
    )
    assert str(tmp_path / "out" / "contract.json") in ended.stdout
    assert "partial" in ended.stdout


def test_a_missing_key_is_named(rig: Rig, tmp_path: Path) -> None:
    ended = run(rig, "parse", "x.pdf", RUNPOD_API_KEY="")
    assert ended.returncode == 2
    assert "RUNPOD_API_KEY" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
