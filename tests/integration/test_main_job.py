"""A document goes in through `/run` and comes out as Markdown and JSON, on the embedded engine."""

import re
from pathlib import Path
from typing import Any

import pytest

from scripts.example_text import PAGES, Columns, page_text
from tests.support.recall import in_order, word_recall
from tests.support.stack import ROOT, Stack, page_texts

EXAMPLES = ROOT / "examples"
KNOWN = [page_text(page) for page in PAGES]
pytestmark = pytest.mark.timeout(400)
TAG = re.compile(r"</?t[a-z]+>")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def results(stack: Stack, out: Path) -> dict[str, dict[str, Any]]:
    return stack.parse(*(EXAMPLES / name for name in ("agreement.pdf", "scan.pdf", "photo.jpg")), into=out)


def words(text: str) -> str:
    return TAG.sub(" ", text)


@pytest.mark.parametrize("name", ["agreement", "scan"])
def test_the_words_of_every_page_come_back(results: dict[str, dict[str, Any]], name: str) -> None:
    recalls = [word_recall(known, words(read)) for known, read in zip(KNOWN, page_texts(results[name]), strict=True)]
    assert min(recalls) >= 0.95, recalls
    assert results[name]["status"] == "complete"
    assert [page["page"] for page in results[name]["pages"]] == [1, 2, 3]


def test_the_words_of_the_photo_come_back_once(results: dict[str, dict[str, Any]]) -> None:
    [read] = page_texts(results["photo"])
    assert word_recall(KNOWN[0], words(read)) >= 0.90
    assert len(words(read).split()) <= 1.1 * len(KNOWN[0].split())


@pytest.mark.parametrize("name", ["agreement", "scan"])
def test_two_columns_come_out_in_order(results: dict[str, dict[str, Any]], name: str) -> None:
    [columns] = [block for block in PAGES[2].blocks if isinstance(block, Columns)]
    assert in_order([*columns.left, *columns.right], page_texts(results[name])[2]) == 1.0
    assert in_order([*columns.left, *columns.right], results[name]["markdown"]) == 1.0


@pytest.mark.parametrize("name", ["agreement", "scan"])
def test_blocks_come_out_in_order(results: dict[str, dict[str, Any]], name: str) -> None:
    for known, read in zip(KNOWN, page_texts(results[name]), strict=True):
        headings = [line for line in known.splitlines() if re.match(r"\d+ [A-Z]", line)]
        assert in_order(headings, read) == 1.0


def test_a_ruled_table_keeps_its_cells(results: dict[str, dict[str, Any]]) -> None:
    assert "<tr><td>Passenger lifts</td><td>6</td><td>310.50</td><td>1863.00</td></tr>" in results["scan"]["markdown"]


def test_the_output_says_what_produced_it(results: dict[str, dict[str, Any]]) -> None:
    produced_by = results["agreement"]["produced_by"]
    assert (produced_by["engine"], produced_by["layout"]) == ("rapidocr", "cdla")
    assert produced_by["engine_version"]
    assert produced_by["layout_version"]


def test_the_command_writes_markdown_beside_json(out: Path, results: dict[str, dict[str, Any]]) -> None:
    assert (out / "agreement.md").read_text("utf-8").strip() == results["agreement"]["markdown"].strip()
