"""A document: typed, saved whole, and honest about what it lacks."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from glmocr_runpod import Document
from glmocr_runpod.errors import Degraded, Undelivered

from tests.contract.golden_files import golden, golden_text


def document(**changes: Any) -> Document:
    return Document.from_json("contract.pdf", json.dumps(copy.deepcopy(golden("inline")) | changes).encode())


def test_typed() -> None:
    read = document()
    assert [page.page for page in read.pages] == [1, 2, 3, 10]
    assert read.regions[0].text == "Agreement \U0001f600"
    assert read.markdown.startswith("# Agreement")
    assert read.transport == ()


def test_saved_files(tmp_path: Path) -> None:
    paths = document().save(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        "contract.figures/page-0001-figure-001.png",
        "contract.md",
        "contract.json",
    ]
    assert json.loads(paths[-1].read_text()) == golden("inline")
    assert "](contract.figures/page-0001-figure-001.png)" in paths[1].read_text()
    assert paths[0].read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["é" * 120 + ".pdf", "x" * 2000 + ".pdf", "\udcff" * 250 + ".pdf"])
def test_long_names_are_cut_and_stay_apart(tmp_path: Path, name: str) -> None:
    wire = json.dumps(golden("inline")).encode()
    for named in (name, "y" + name):
        Document.from_json(named, wire).save(tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 2


@pytest.mark.parametrize("name", ["../../evil.png", "/etc/evil.png", "..\\evil.png", "a/../../evil.png"])
def test_nothing_is_written_outside(tmp_path: Path, name: str) -> None:
    wire = copy.deepcopy(golden("inline"))
    wire["artifacts"][0]["name"] = name
    out = tmp_path / "in" / "out"
    for path in document(**wire).save(out):
        assert path.resolve().is_relative_to(out.resolve())


@pytest.mark.parametrize("spoilt", [{"sha256": "0" * 64}, {"data": "not base64"}, {"data": None}])
def test_a_figure_that_is_not_what_its_digest_names_is_absent(tmp_path: Path, spoilt: dict[str, Any]) -> None:
    wire = copy.deepcopy(golden("inline"))
    wire["artifacts"][0] |= spoilt
    assert len(document(**wire).save(tmp_path)) == 2
    assert document(**wire).absent[0].name == "figures/page-0001-figure-001.png"


def test_degraded() -> None:
    with pytest.raises(Degraded, match="partial, 2 pages or regions are degraded; page 3: token_limit"):
        document().raise_if_degraded()
    with pytest.raises(Degraded, match="complete, 1 pages"):
        document(status="complete", degraded={"count": 1, "items": []}).raise_if_degraded()
    perfect = {"status": "complete", "degraded": {"count": 0, "items": []}}
    with pytest.raises(Degraded, match=r"1 files could not be fetched: big\.jpg"):
        document(**perfect).raise_if_degraded()
    document(**perfect, artifacts=[]).raise_if_degraded()


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"status": 1}', golden_text("progress").encode(), b"\xff"])
def test_what_is_no_result(data: bytes) -> None:
    with pytest.raises(Undelivered, match="contract version 1"):
        Document.from_json("x", data)
