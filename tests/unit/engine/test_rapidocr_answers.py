import cv2
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from handler.engine.rapidocr_answers import Rules, html_table, plain_text, printed_rules
from handler.engine.rapidocr_reader import Line
from handler.geometry import PixelBox


def line(text: str, x0: int, y0: int, x1: int, y1: int) -> Line:
    return Line(text, PixelBox(x0, y0, x1, y1), 0.9)


def test_runs_on_one_line_are_joined_and_lines_are_not() -> None:
    lines = [line("below", 0, 40, 90, 70), line("right", 60, 0, 100, 30), line("left", 0, 2, 40, 30)]
    assert plain_text(lines) == "left right\nbelow"


def test_two_columns_of_lines_come_out_one_after_the_other() -> None:
    left = [line(f"{n}.", 0, 30 * n, 300, 30 * n + 28) for n in range(4)]
    right = [line(f"{n + 4}.", 400, 30 * n, 700, 30 * n + 28) for n in range(4)]
    assert plain_text([*left, *right]).split() == [f"{n}." for n in range(8)]


def test_cells_from_white_space() -> None:
    lines = [line("a", 0, 0, 40, 20), line("b", 100, 2, 150, 22), line("c", 5, 40, 30, 60), line("d", 105, 41, 130, 60)]
    assert html_table(lines, Rules()) == "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"


def test_cells_from_rules_hold_several_lines() -> None:
    lines = [
        line("one", 5, 5, 40, 20),
        line("two", 5, 25, 40, 40),
        line("x", 105, 5, 120, 20),
        line("y", 5, 60, 20, 75),
    ]
    rules = Rules(xs=(0, 100, 200), ys=(0, 50, 100))
    assert html_table(lines, rules) == (
        "<table><tr><td>one two</td><td>x</td></tr><tr><td>y</td><td></td></tr></table>"
    )


def test_text_that_looks_like_html_stays_text() -> None:
    assert html_table([line("a < b & c", 0, 0, 40, 20)], Rules()) == "<table><tr><td>a &lt; b &amp; c</td></tr></table>"


def test_rules_are_found_where_they_are_printed_and_letters_are_not_rules() -> None:
    picture = np.full((400, 600, 3), 255, np.uint8)
    for x in (20, 300, 580):
        cv2.line(picture, (x, 20), (x, 380), (0, 0, 0), 2)
    for y in (20, 200, 380):
        cv2.line(picture, (20, y), (580, y), (0, 0, 0), 2)
    cv2.putText(picture, "llll 1111", (40, 100), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 0), 2)
    rules = printed_rules(picture)
    assert [round(x, -1) for x in rules.xs] == [20, 300, 580]
    assert [round(y, -1) for y in rules.ys] == [20, 200, 380]


def test_an_empty_picture_is_an_empty_table() -> None:
    assert printed_rules(np.full((50, 50, 3), 255, np.uint8)) == Rules()
    assert html_table([], Rules()) == "<table></table>"


spans = st.tuples(st.integers(0, 500), st.integers(0, 500), st.integers(1, 200), st.integers(1, 60))
positions = st.lists(st.integers(0, 600), max_size=5).map(lambda values: tuple(sorted(values)))


@given(st.lists(spans, max_size=15), positions, positions)
def test_no_run_is_ever_lost(places: list[tuple[int, int, int, int]], xs: tuple[int, ...], ys: tuple[int, ...]) -> None:
    lines = [line(f"w{n}w", x, y, x + w, y + h) for n, (x, y, w, h) in enumerate(places)]
    table, text = html_table(lines, Rules(xs, ys)), plain_text(lines)
    assert all(table.count(one.text) == 1 and text.split().count(one.text) == 1 for one in lines)
