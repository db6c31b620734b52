"""A document goes in through `/run` and comes out as Markdown and JSON, on the embedded engine."""

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scripts.example_text import PAGES, Columns, page_text
from tests.support.recall import in_order, word_recall
from tests.support.stack import ROOT, Stack, page_texts

EXAMPLES = ROOT / "examples"
KNOWN = [page_text(page) for page in PAGES]
pytestmark = pytest.mark.timeout(400)
Read = Callable[[str], dict[str, Any]]
TAG = re.compile(r"</?t[a-z]+>")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("out")


@pytest.fixture(scope="module")
def read(stack: Stack, out: Path) -> Read:
    """The result of an example, read when it is first asked for: the tests may run in several processes."""

    @functools.cache
    def read(name: str) -> dict[str, Any]:
        return stack.parse(EXAMPLES / f"{name}.{'jpg' if name == 'photo' else 'pdf'}", into=out)[name]

    return read


def words(text: str) -> str:
    return TAG.sub(" ", text)


@pytest.mark.parametrize("name", ["agreement", "scan"])
def test_the_words_of_every_page_come_back(read: Read, name: str) -> None:
    recalls = [word_recall(known, words(text)) for known, text in zip(KNOWN, page_texts(read(name)), strict=True)]
    assert min(recalls) >= 0.95, recalls
    assert read(name)["status"] == "complete"
    assert [page["page"] for page in read(name)["pages"]] == [1, 2, 3]


def test_the_words_of_the_photo_come_back_once(read: Read) -> None:
    [text] = page_texts(read("photo"))
    assert word_recall(KNOWN[0], words(text)) >= 0.90
    assert len(words(text).split()) <= 1.1 * len(KNOWN[0].split())


@pytest.mark.parametrize("name", ["agreement", "scan"])
def test_two_columns_come_out_in_order(read: Read, name: str) -> None:
    [columns] = [block for block in PAGES[2].blocks if isinstance(block, Columns)]
    assert in_order([*columns.left, *columns.right], page_texts(read(name))[2]) == 1.0
    assert in_order([*columns.left, *columns.right], read(name)["markdown"]) == 1.0


@pytest.mark.parametrize("name", ["agreement", "scan"])
def test_blocks_come_out_in_order(read: Read, name: str) -> None:
    for known, text in zip(KNOWN, page_texts(read(name)), strict=True):
        headings = [line for line in known.splitlines() if re.match(r"\d+ [A-Z]", line)]
        assert in_order(headings, text) == 1.0


def test_a_ruled_table_keeps_its_cells(read: Read) -> None:
    assert "<tr><td>Passenger lifts</td><td>6</td><td>310.50</td><td>1863.00</td></tr>" in read("scan")["markdown"]


def test_the_output_says_what_produced_it(read: Read) -> None:
    produced_by = read("agreement")["produced_by"]
    assert (produced_by["engine"], produced_by["layout"]) == ("rapidocr", "cdla")
    assert produced_by["engine_version"]
    assert produced_by["layout_version"]


def test_the_command_writes_markdown_beside_json(out: Path, read: Read) -> None:
    assert (out / "agreement.md").read_text("utf-8").strip() == read("agreement")["markdown"].strip()
