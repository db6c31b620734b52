"""Page selections, as the worker reads them."""

import pytest
from glmocr_runpod.errors import ConfigError
from glmocr_runpod.pages import beyond, canonical, chunks, select, spell
from hypothesis import given
from hypothesis import strategies as st

from handler import page_ranges
from handler.errors import InputError
from handler.page_ranges import select_pages


@given(st.sets(st.integers(1, 60), min_size=1))
def test_spelling_and_selecting_are_inverse(numbers: set[int]) -> None:
    assert select(spell(sorted(numbers)), 60) == tuple(sorted(numbers))


@pytest.mark.parametrize(
    "spec", [None, "", "1-3,7,10-", "5", "-3", "2-2,2", "9-100", " 1 , 3 ", "3,2,1", "4-,2", "3-,1-2", "1-"]
)
def test_the_worker_selects_the_same(spec: str | None) -> None:
    assert select(spec, 12) == select_pages(spec, 12)
    assert canonical(spec) == page_ranges.canonical(spec)


@pytest.mark.parametrize("spec", ["x", "1,,2", "1-2-3", "-", "3-1", "0", "0-2"])
def test_nonsense_is_named(spec: str) -> None:
    with pytest.raises(ConfigError, match="pages"):
        select(spec, 5)
    with pytest.raises(InputError):
        select_pages(spec, 5)


@pytest.mark.parametrize(
    ("spec", "rest"), [(None, "13-"), ("10-", "13-"), ("1-3,7", None), ("9-20", "13-20"), ("1-12", None)]
)
def test_what_is_asked_beyond_the_pages_counted(spec: str | None, rest: str | None) -> None:
    assert beyond(spec, 12) == rest


@given(st.integers(1, 300), st.integers(1, 50))
def test_chunks_are_even_and_whole(count: int, size: int) -> None:
    made = chunks(range(1, count + 1), size)
    lengths = {len(chunk) for chunk in made}
    assert [number for chunk in made for number in chunk] == list(range(1, count + 1))
    assert max(lengths) <= size
    assert max(lengths) - min(lengths) <= 1
