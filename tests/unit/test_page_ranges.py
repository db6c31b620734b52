import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.errors import InputError, PagesOutOfRange
from handler.page_ranges import canonical, select_pages


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, (1, 2, 3, 4, 5)),
        ("", (1, 2, 3, 4, 5)),
        ("2", (2,)),
        ("1-3", (1, 2, 3)),
        ("4-", (4, 5)),
        ("-2", (1, 2)),
        ("1-2, 5", (1, 2, 5)),
        ("5,1,1-2", (1, 2, 5)),
        ("4-900", (4, 5)),
        ("2,77", (2,)),
    ],
)
def test_selects(spec: str | None, expected: tuple[int, ...]) -> None:
    assert select_pages(spec, 5) == expected


@pytest.mark.parametrize("spec", ["a", "1-b", "3-2", "0", "0-3", "-", ",", "1,,2", "1-2-3", "1;2", "-0", "1e3", "٣-"])
def test_refuses_what_is_no_range(spec: str) -> None:
    with pytest.raises(InputError):
        select_pages(spec, 5)


@pytest.mark.parametrize("spec", ["6", "6-", "9-12"])
def test_says_when_nothing_is_left(spec: str) -> None:
    with pytest.raises(PagesOutOfRange) as caught:
        select_pages(spec, 5)
    assert caught.value.details["page_count"] == 5


def test_large_numbers_cost_nothing() -> None:
    assert select_pages("1-9999999", 3) == (1, 2, 3)


@given(st.text(alphabet="0123456789-, x", max_size=12), st.integers(1, 40))
def test_every_selection_lies_in_the_document(spec: str, page_count: int) -> None:
    try:
        pages = select_pages(spec, page_count)
    except InputError:
        return
    assert pages
    assert list(pages) == sorted(set(pages))
    assert pages[0] >= 1
    assert pages[-1] <= page_count


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (None, None),
        (" ", None),
        ("1-", None),
        ("3-,-2", None),
        ("3,1,2", "1-3"),
        ("10-,1 - 3,7", "1-3,7,10-"),
        ("5-,7-9,6", "5-"),
        ("4-4", "4"),
    ],
)
def test_one_selection_has_one_spelling(spec: str | None, expected: str | None) -> None:
    assert canonical(spec) == expected


@given(st.lists(st.tuples(st.integers(1, 12), st.one_of(st.none(), st.integers(1, 12))), min_size=1, max_size=5))
def test_the_spelling_selects_the_same(ranges: list[tuple[int, int | None]]) -> None:
    spec = ",".join(f"{first}-{'' if last is None else max(first, last)}" for first, last in ranges)
    spelt = canonical(spec)
    assert canonical(spelt) == spelt
    for page_count in (12, 40):
        assert select_pages(spelt, page_count) == select_pages(spec, page_count)
