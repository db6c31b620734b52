import threading

import cv2
import numpy as np
import pytest

from handler.engine.rapidocr_reader import GivenUp, Reader, cut_at, letter_height, single_line
from handler.layout.ink import Picture, ink_mask, marks_of


def printed(*lines: str) -> Picture:
    picture = np.full((40 + 50 * len(lines), 700, 3), 255, np.uint8)
    for n, line in enumerate(lines):
        cv2.putText(picture, line, (20, 50 + 50 * n), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 0), 2)
    return picture


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


def test_one_line_is_told_from_two() -> None:
    one = single_line(marks_of(ink_mask(printed("Only one line, with ascenders and gaps"))))
    assert one is not None
    assert (one.x0 < 25, one.y0 < 30, one.y1 > 50) == (True, True, True)
    assert single_line(marks_of(ink_mask(printed("one", "two")))) is None


def test_nothing_printed_is_no_line() -> None:
    marks = marks_of(ink_mask(printed()))
    assert letter_height(marks) == 0
    assert single_line(marks) is None


def test_a_run_is_cut_where_a_rule_goes_through_it_and_not_at_its_edge() -> None:
    run = np.array([[0, 0], [100, 0], [100, 20], [0, 20]], np.float32)
    assert [piece[:, 0].tolist() for piece in cut_at(run, [40, 98])] == [[0, 40, 40, 0], [40, 100, 100, 40]]


def test_the_boxes_are_the_pictures_own(reader: Reader) -> None:
    first, second = sorted(reader.lines(printed("alpha", "omega")), key=lambda line: line.box.y0)
    assert (first.text, second.text) == ("alpha", "omega")
    assert 10 <= first.box.x0 <= 25
    assert 90 <= second.box.y1 <= 130


def test_nobody_is_kept_waiting_for_what_nobody_waits_for(reader: Reader) -> None:
    given_up = threading.Event()
    given_up.set()
    with pytest.raises(GivenUp):
        reader.lines(printed("alpha", "omega"), given_up=given_up)


def test_an_empty_picture_has_no_lines(reader: Reader) -> None:
    assert reader.lines(printed()) == []
