import numpy as np
import pytest
from numpy.typing import NDArray

from handler.documents.ink import coverage, ink_mask, ink_share
from handler.documents.page import Coverage
from handler.geometry import PixelBox, page_box

WIDTH, HEIGHT = 1653, 2339


def page() -> NDArray[np.uint8]:
    return np.full((HEIGHT, WIDTH, 3), 250, np.uint8)


def write(on: NDArray[np.uint8], x: int, y: int, words: int = 6, ink: int = 20) -> PixelBox:
    """One line of `words` blocks of 90 x 24 px with gaps of 20."""
    for word in range(words):
        left = x + 110 * word
        for stroke in range(left, left + 90, 9):
            on[y : y + 24, stroke : stroke + 5] = ink
    return PixelBox(x, y, x + 110 * words - 20, y + 24)


def looked_at(on: NDArray[np.uint8], *boxes: PixelBox) -> Coverage:
    return coverage(ink_mask(on), boxes, WIDTH, HEIGHT)


def test_a_page_without_ink_is_covered() -> None:
    assert ink_share(ink_mask(page())) == 0
    assert looked_at(page()) == Coverage(1.0)


@pytest.mark.parametrize(("paper", "ink"), [(255, 0), (0, 255), (128, 30), (200, 120)])
def test_ink_is_what_differs_from_the_paper(paper: int, ink: int) -> None:
    inked = np.full((HEIGHT, WIDTH, 3), paper, np.uint8)
    for line in range(20):
        write(inked, 200, 300 + 80 * line, ink=ink)
    strokes = 20 * 6 * 10 * 5 * 24
    assert ink_share(ink_mask(inked)) == pytest.approx(strokes / (WIDTH * HEIGHT), rel=0.1)


def test_bleed_through_and_noise_are_no_ink() -> None:
    noisy = page()
    noisy[::2] -= 25
    write(noisy, 200, 300, ink=222)
    assert ink_share(ink_mask(noisy)) == 0


def test_a_page_number_alone_is_missed_and_dust_is_not() -> None:
    numbered = page()
    number = write(numbered, 800, 2200, words=1)
    dusty = page()
    for speck in range(60):
        dusty[31 * speck : 31 * speck + 3, 27 * speck : 27 * speck + 3] = 60
    [area] = looked_at(numbered).missed
    assert (area.x0, area.y0) <= (number.x0, number.y0)
    assert looked_at(dusty).missed == ()
    assert ink_share(ink_mask(dusty)) > 0


def test_lines_outside_the_boxes_come_back_as_one_area() -> None:
    inked = page()
    covered = write(inked, 200, 200)
    missed = [write(inked, 200, 1000 + 40 * line) for line in range(4)]
    answer = looked_at(inked, covered)
    assert answer.covered == pytest.approx(0.2, abs=0.03)
    [area] = answer.missed
    assert area.x0 <= missed[0].x0
    assert area.y0 <= missed[0].y0
    assert area.x1 >= missed[-1].x1
    assert area.y1 >= missed[-1].y1
    assert area.area < 1.6 * (missed[-1].x1 - missed[0].x0) * (missed[-1].y1 - missed[0].y0)


def test_far_apart_areas_stay_apart_and_are_read_from_the_top() -> None:
    inked = page()
    write(inked, 900, 2000)
    write(inked, 200, 300)
    answer = looked_at(inked, PixelBox(0, 0, 1, 1))
    assert [area.y0 < 1000 for area in answer.missed] == [True, False]
    assert answer.covered == 0


def test_a_page_number_is_an_area_and_a_speck_is_not() -> None:
    inked = page()
    inked[2200:2224, 820:850] = 0
    inked[500:505, 700:705] = 0
    assert len(looked_at(inked, PixelBox(0, 0, 1, 1)).missed) == 1


def test_rules_and_scan_edges_are_not_worth_reading() -> None:
    inked = page()
    inked[1000:1004, 100:1500] = 0
    inked[:, :20] = 0
    assert looked_at(inked, PixelBox(300, 300, 301, 301)).missed == ()


def test_strokes_that_reach_out_of_their_box_are_no_area() -> None:
    inked = page()
    line = write(inked, 200, 300)
    tight = PixelBox(line.x0 + 3, line.y0 + 4, line.x1 - 12, line.y1 - 5)
    assert looked_at(inked, tight).missed == ()


def test_boxes_may_be_degenerate_or_outside() -> None:
    inked = page()
    write(inked, 200, 300)
    answer = looked_at(inked, PixelBox(-50, -50, -10, -10), PixelBox(900, 900, 100, 100), page_box(9999, 9999))
    assert answer == Coverage(1.0)


def test_scattered_ink_becomes_one_area_rather_than_hundreds() -> None:
    inked = page()
    for y in range(100, 2200, 200):
        for x in range(100, 1500, 200):
            inked[y : y + 30, x : x + 30] = 0
    assert len(looked_at(inked, PixelBox(0, 0, 1, 1)).missed) == 1


@pytest.mark.parametrize("size", [(1, 1), (30_000, 21), (3, 25_000), (2000, 12_000)])
def test_pages_of_any_shape_have_an_ink_share(size: tuple[int, int]) -> None:
    white = np.full((size[1], size[0], 3), 255, np.uint8)
    assert ink_share(ink_mask(white)) == 0
