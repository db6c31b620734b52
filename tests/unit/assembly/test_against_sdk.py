"""Our Markdown beside the SDK's, on regions of real documents. docs/architecture.md lists the differences."""

import re
from collections.abc import Callable

import pytest

from handler.assembly import markdown
from handler.schema import Furniture, Label, PageResult
from tests import real_documents
from tests.fakes.results import page, region
from tests.real_documents import RealRegion, needs_real_documents

pytestmark = needs_real_documents

IMAGE_LINK = re.compile(r"!\[[^]]*\]\([^)]*\)")
TITLES = {"# ": Label.DOC_TITLE, "## ": Label.PARAGRAPH_TITLE}
OTHERS = {"table": Label.TABLE, "formula": Label.DISPLAY_FORMULA, "image": Label.IMAGE}

documents = pytest.mark.parametrize("name", real_documents.names())


def as_formatted(region: RealRegion) -> str:
    """The region's text as the SDK's JSON has it."""
    return region.text


def as_said(region: RealRegion) -> str:
    """What the model said, as far as the SDK's formatting can be undone."""
    if region.label != "text":
        return region.text
    text = re.sub(r"^#+ ", "", region.text)
    text = re.sub(r"^(\d+|[A-Za-z])([.)]) (?=\S)", r"\1\2", text)
    return text.replace("\n\n", "\n")


def label_of(region: RealRegion) -> Label:
    marks = (label for mark, label in TITLES.items() if region.text.startswith(mark))
    return OTHERS.get(region.label) or next(marks, Label.TEXT)


def ours(name: str, text_of: Callable[[RealRegion], str]) -> str:
    def as_page(number: int, regions: list[RealRegion]) -> PageResult:
        figure = f"figures/page-{number:04d}-figure.jpg"
        found = [
            region(text_of(r), label_of(r), bbox=r.box, figure=figure if r.label == "image" else None) for r in regions
        ]
        return page(*found, number=number)

    pages = [as_page(number, regions) for number, regions in enumerate(real_documents.pages(name), 1)]
    return markdown(pages, furniture=Furniture.DROP)


@documents
def test_on_formatted_text_only_links_escapes_and_blanks_in_formulas_differ(name: str) -> None:
    def comparable(text: str) -> list[str]:
        text = IMAGE_LINK.sub("picture", text).replace("\\<", "<")
        return re.sub(r"\$ ?([^$\n]*?) ?\$", r"$\1$", text).rstrip().split("\n")

    assert comparable(ours(name, as_formatted)) == comparable(real_documents.sdk_markdown(name))


@documents
def test_on_the_models_own_words_only_white_space_escapes_and_links_differ(name: str) -> None:
    def comparable(text: str) -> str:
        return re.sub(r"\s+", "", IMAGE_LINK.sub("picture", text).replace("\\<", "<"))

    assert comparable(ours(name, as_said)) == comparable(real_documents.sdk_markdown(name))


@needs_real_documents
def test_section_numbers_stay_as_printed() -> None:
    """The page prints 7.4.1; the SDK writes 7. 4.1."""
    assert "\n7. 4.1 " in real_documents.sdk_markdown("page")
    assert "\n7.4.1 " in ours("page", as_said)


def test_code_stays_as_written() -> None:
    """The SDK puts a blank line after each line of code."""
    assert "<weblogic-rdbms-bean>\n\n" in real_documents.sdk_markdown("code")
    assert "<weblogic-rdbms-bean>\n  <" in ours("code", as_said)
