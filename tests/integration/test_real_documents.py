"""Pages that no one here wrote, against what the published GLM-OCR model made of them.

The pages are not part of this repository; without them these tests skip.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.recall import character_recall
from tests.support.stack import ROOT, Stack, page_texts

PAGES = ROOT.parent / "shared" / "real-documents"
NAMES = ("page", "table", "code", "handwritten")
DISPLAYED_FORMULA = re.compile(r"\$\$.*?\$\$", re.DOTALL)
MARKUP = re.compile(r"</?(?:table|thead|tbody|tr|th|td)[^>]*>|\\[a-zA-Z]+|[${}_^#`*\\]")

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(not PAGES.is_dir(), reason="the real documents are not beside this repository"),
]


@pytest.fixture(scope="module")
def read(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """The text of a page, read when it is first asked for: the tests may run in several processes."""
    folder = tmp_path_factory.mktemp("real")

    @functools.cache
    def read(name: str) -> str:
        [text] = page_texts(stack.parse(PAGES / f"{name}.png", into=folder)[name])
        return text

    return read


def letters(text: str) -> str:
    """Without markup and displayed formulas: RapidOCR knows neither."""
    return MARKUP.sub("", DISPLAYED_FORMULA.sub("", text))


def published(name: str) -> str:
    return Path(PAGES / f"{name}.md").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_characters_that_the_published_model_read_are_read(read: Callable[[str], str], name: str) -> None:
    assert character_recall(letters(published(name)), letters(read(name))) >= 0.95


def test_a_double_page_is_read_left_page_first(read: Callable[[str], str]) -> None:
    assert 0 <= read("page").find("采用胶缝传力") < read("page").find("可采用四点支承")


def test_listings_are_read_though_the_layout_model_takes_them_for_figures(read: Callable[[str], str]) -> None:
    assert "<generator-type>NAMED_SEQUENCE_TABLE</generator-type>" in read("code").replace(" ", "")
