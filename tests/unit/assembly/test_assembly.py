import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.assembly import markdown
from handler.schema import Furniture, Label, PageResult, PageStatus, Reason, RegionResult, RegionStatus
from tests.fakes.results import failed, page, region, skipped, truncated


def write(*pages: PageResult, furniture: Furniture = Furniture.DROP) -> str:
    return markdown(pages, furniture=furniture)


def test_pages_and_regions_come_in_order_a_blank_line_apart() -> None:
    first = page(region("Title", Label.DOC_TITLE), region("Part", Label.PARAGRAPH_TITLE), region("One."))
    assert write(first, page(region("Two."), number=2)) == "# Title\n\n## Part\n\nOne.\n\nTwo.\n"


def test_nothing_is_written_for_nothing() -> None:
    assert write(page(status=PageStatus.BLANK), page(region(""))) == ""


@pytest.mark.parametrize("label", [Label.HEADER, Label.FOOTER, Label.NUMBER])
def test_furniture_is_kept_or_dropped(label: Label) -> None:
    content = page(region("Invoice 4711", label), region("Body."))
    assert write(content) == "Body.\n"
    assert write(content, furniture=Furniture.KEEP) == "Invoice 4711\n\nBody.\n"


@pytest.mark.parametrize("label", [Label.FOOTNOTE, Label.ASIDE_TEXT, Label.REFERENCE, Label.SEAL, Label.VERTICAL_TEXT])
def test_what_is_not_furniture_is_never_dropped(label: Label) -> None:
    assert write(page(region("Note 1", label))) == "Note 1\n"


def test_references_are_not_written_twice() -> None:
    whole = region("[1] A.\n[2] B.", Label.REFERENCE, bbox=(100, 100, 900, 300))
    entries = [
        region("[1] A.", Label.REFERENCE_CONTENT, bbox=(100, 100, 900, 190)),
        region("[2] B.", Label.REFERENCE_CONTENT, bbox=(100, 210, 900, 300)),
    ]
    assert write(page(whole, *entries)) == "[1] A.\n\n[2] B.\n"
    assert write(page(whole, entries[0].model_copy(update={"bbox": (100, 800, 900, 900)}))).count("[1] A.") == 2


def test_references_whose_entries_hold_less_are_written_as_a_whole() -> None:
    whole = region("[1] A.\n[2] B.", Label.REFERENCE, bbox=(100, 100, 900, 300))
    first = region("[1] A.", Label.REFERENCE_CONTENT, bbox=(100, 100, 900, 290))
    second = failed().model_copy(update={"label": Label.REFERENCE_CONTENT, "bbox": (100, 210, 900, 300)})
    assert "[2] B." in write(page(whole, first, second))
    cut = truncated("[1] A").model_copy(update={"label": Label.REFERENCE, "bbox": whole.bbox})
    assert "truncated" in write(page(cut, first))


def test_neither_a_quarantined_formula_nor_a_quarantined_number_hides_the_other() -> None:
    formula, number = region("a = b", Label.DISPLAY_FORMULA), region("(3)", Label.FORMULA_NUMBER)
    invented = {"status": RegionStatus.SKIPPED, "reason": Reason.TEXT_WITHOUT_INK}
    assert "(3)" in write(page(formula.model_copy(update=invented), number))
    written = write(page(formula, number.model_copy(update=invented)))
    assert "a = b\n$$" in written
    assert "3" not in written.replace("region 1", "")


@pytest.mark.parametrize("swapped", [False, True])
def test_a_formula_takes_the_number_beside_it(swapped: bool) -> None:
    pair = [region("a = b", Label.DISPLAY_FORMULA), region("(3)", Label.FORMULA_NUMBER)]
    assert write(page(*(pair[::-1] if swapped else pair))) == "$$\na = b \\tag{3}\n$$\n"


def test_a_number_without_a_formula_stays() -> None:
    assert write(page(region("Text."), region("(3)", Label.FORMULA_NUMBER))) == "Text.\n\n(3)\n"


def test_each_formula_takes_one_number() -> None:
    regions = [
        region("a", Label.DISPLAY_FORMULA),
        region("(1)", Label.FORMULA_NUMBER),
        region("b", Label.DISPLAY_FORMULA),
        region("(2)", Label.FORMULA_NUMBER),
        region("(3)", Label.FORMULA_NUMBER),
    ]
    assert write(page(*regions)) == "$$\na \\tag{1}\n$$\n\n$$\nb \\tag{2}\n$$\n\n(3)\n"


def test_a_figure_is_linked_and_its_text_follows() -> None:
    figure = region("Sales 2025", Label.CHART, figure="figures/page-0001-figure-000.jpg")
    assert write(page(figure)) == "![chart](figures/page-0001-figure-000.jpg)\n\nSales 2025\n"


def test_a_figure_that_was_neither_read_nor_cut_leaves_a_comment() -> None:
    assert write(page(skipped())) == "<!-- page 1, region 0 (image): skipped - figure_not_read -->\n"


def test_an_area_in_which_no_text_was_seen_leaves_nothing() -> None:
    assert write(page(region("Body."), skipped("", Reason.EMPTY_ANSWER))) == "Body.\n"


def test_a_failed_page_leaves_a_comment() -> None:
    lost = page(number=3, status=PageStatus.FAILED, reason=Reason.RENDER_TIMEOUT, message="30 s")
    assert write(lost) == "<!-- page 3: not read - render_timeout - 30 s -->\n"


def test_a_failed_region_leaves_a_comment_and_a_truncated_one_its_text_as_well() -> None:
    assert write(page(failed(), truncated(), status=PageStatus.PARTIAL)) == (
        "<!-- page 1, region 0 (text): failed - engine_error - 503 -->\n\n"
        "half\n\n"
        "<!-- page 1, region 1 (text): truncated - token_limit - cut short -->\n"
    )


def test_an_unclosed_table_does_not_swallow_what_follows() -> None:
    cut = region("<table><tr><td>1", Label.TABLE, status="truncated", reason=Reason.UNCLOSED_TABLE)
    assert write(page(cut, region("After."))).startswith("<table><tr><td>1\n</table>\n\n<!-- page 1")


def test_quarantined_text_stays_out_and_leaves_a_comment() -> None:
    written = write(page(skipped("Once upon a time", Reason.TEXT_WITHOUT_INK)))
    assert "Once" not in written
    assert "text_without_ink" in written


def test_equal_rows_and_what_follows_are_written_in_full() -> None:
    rows = "".join(f"<tr><td>{'Widget, blue, with certificate ' * 5}</td><td>10.00</td></tr>" for _ in range(15))
    text = f"<table>{rows}<tr><td>Total</td><td>150.00</td></tr></table>"
    assert len(text) > 2048
    assert write(page(region(text, Label.TABLE))) == text + "\n"


labels = st.sampled_from(Label)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=60)


@given(st.lists(st.tuples(texts, labels), max_size=6))
def test_every_letter_of_what_was_read_is_written(content: list[tuple[str, Label]]) -> None:
    regions: list[RegionResult] = [
        region(text, label, bbox=(0, 150 * i, 1000, 150 * i + 100)) for i, (text, label) in enumerate(content)
    ]
    written = write(page(*regions), furniture=Furniture.KEEP)
    for text, _ in content:
        letters = [character for character in text if character.isalnum()]
        rest = iter(written)
        assert all(letter in rest for letter in letters)
