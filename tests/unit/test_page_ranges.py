import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.errors import InputError, PagesOutOfRange
from handler.page_ranges import select_pages


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
