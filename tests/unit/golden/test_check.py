import json
from importlib.resources import files
from typing import Any

import pymupdf
import pytest

from handler.errors import GateError
from handler.golden.check import golden_document, verify_golden
from handler.layout.names import LayoutName
from handler.schema import Label, PageResult, PageStatus, Reason, RegionResult, RegionStatus

EXPECTED: dict[str, Any] = json.loads((files("handler.golden") / "expected.json").read_text("utf-8"))


def page(text: str, labels: tuple[Label, ...] = (Label.TEXT, Label.TABLE), reason: Reason | None = None) -> PageResult:
    regions = tuple(
        RegionResult(index=i, label=label, bbox=(0, 0, 1, 1), bbox_px=(0, 0, 1, 1), text=text if i == 0 else "",
                     status=RegionStatus.OK)
        for i, label in enumerate(labels)
    )  # fmt: skip
    status = PageStatus.FAILED if reason else PageStatus.OK
    return PageResult(page=1, status=status, reason=reason, regions=regions)


def test_the_page_as_it_is_passes() -> None:
    with pymupdf.open(golden_document().path) as document:
        verify_golden(page(document[0].get_text()), LayoutName.PP_DOCLAYOUT_V3)


def test_plausible_garbage_ends_the_boot() -> None:
    with pytest.raises(GateError, match=r"golden page: \d+% of its words came back, 90% needed.*BOOT_GOLDEN_PAGE=off"):
        verify_golden(page("The quick brown fox is read once before the lazy dog"), LayoutName.PP_DOCLAYOUT_V3)


def test_a_page_that_could_not_be_read_says_why() -> None:
    with pytest.raises(GateError, match="page failed, layout_failed"):
        verify_golden(page("", (), Reason.LAYOUT_FAILED), LayoutName.PP_DOCLAYOUT_V3)


def test_one_word_repeated_is_not_the_page() -> None:
    with pytest.raises(GateError):
        verify_golden(page(EXPECTED["words"][0] + " " + "page " * 500), LayoutName.PP_DOCLAYOUT_V3)


def test_a_layout_model_that_finds_no_table_ends_the_boot_unless_there_is_none() -> None:
    text = " ".join(EXPECTED["words"])
    with pytest.raises(GateError, match="found no table region; check its weights"):
        verify_golden(page(text, (Label.TEXT,)), LayoutName.PP_DOCLAYOUT_V3)
    verify_golden(page(text, (Label.TEXT,)), LayoutName.WHOLE_PAGE)
