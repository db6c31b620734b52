"""The order in which a document's pages are begun, and the order in which they are given back."""

import pytest

from handler.geometry import PixelBox
from handler.schema import Label
from tests.fakes.reading import read_all
from tests.fakes.world import Behaviour, PlannedPage, PlannedRegion, World

PAGE = PlannedPage((PlannedRegion(Label.TEXT, PixelBox(0, 0, 200, 100), Behaviour.WELL),))


@pytest.mark.parametrize(
    ("tables", "pages", "drawn"),
    [
        (set(), None, [1, 2, 3, 4, 5, 6, 7]),
        ({4, 7}, None, [1, 4, 7, 2, 3, 5, 6]),
        ({1, 2, 3, 4, 5, 6, 7}, None, [1, 2, 3, 4, 5, 6, 7]),
        ({2, 7}, "3-7", [3, 7, 4, 5, 6]),
    ],
)
def test_pages_with_tables_are_begun_after_the_first_page_and_given_back_in_their_place(
    tables: set[int], pages: str | None, drawn: list[int]
) -> None:
    world = World((PAGE,) * 7, tables=frozenset(tables))
    output = read_all(world, **({"pages": pages} if pages else {}))
    assert world.drawn == drawn
    assert [page.page for page in output.pages] == sorted(drawn)
