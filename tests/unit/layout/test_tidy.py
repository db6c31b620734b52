import cv2
import numpy as np

from handler.geometry import PixelBox
from handler.layout.detector import Detection
from handler.layout.tidy import fitted_to_lines, without_duplicates
from handler.schema import Label


def found(label: Label, box: tuple[int, int, int, int], score: float) -> Detection:
    return Detection(label, PixelBox(*box), score)


def test_the_better_of_two_twins_stays_and_takes_the_area_of_both() -> None:
    kept = without_duplicates([found(Label.TEXT, (0, 0, 100, 100), 0.5), found(Label.TEXT, (5, 0, 110, 100), 0.9)])
    assert kept == [found(Label.TEXT, (0, 0, 110, 100), 0.9)]


def test_a_table_is_a_table_even_where_a_picture_scores_a_little_higher() -> None:
    kept = without_duplicates([found(Label.IMAGE, (0, 0, 100, 100), 0.6), found(Label.TABLE, (0, 0, 100, 99), 0.5)])
    assert [d.label for d in kept] == [Label.TABLE]


def test_what_lies_inside_belongs_to_what_is_around_it() -> None:
    kept = without_duplicates([found(Label.TEXT, (0, 0, 900, 900), 0.9), found(Label.HEADER, (10, 10, 200, 40), 0.4)])
    assert kept == [found(Label.TEXT, (0, 0, 900, 900), 0.9)]


def test_a_box_around_two_columns_gives_way_to_them() -> None:
    left, right = found(Label.TEXT, (0, 0, 480, 900), 0.9), found(Label.TEXT, (520, 0, 1000, 900), 0.4)
    kept = without_duplicates([found(Label.TEXT, (0, 0, 1000, 900), 0.95), left, right])
    assert sorted(kept, key=lambda d: d.box) == [left, right]


def test_neighbours_stay_apart() -> None:
    one, two = found(Label.TEXT, (0, 0, 100, 100), 0.9), found(Label.TEXT, (0, 95, 100, 200), 0.8)
    assert sorted(without_duplicates([one, two]), key=lambda d: d.box) == [one, two]


def test_a_box_that_cuts_off_the_first_letters_grows_to_the_whole_line() -> None:
    page = np.full((1200, 900, 3), 255, np.uint8)
    cv2.putText(page, "The first letters of every line", (100, 300), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0))
    [grown] = fitted_to_lines([found(Label.TEXT, (150, 280, 300, 312), 0.9)], page)
    assert grown.box.x0 <= 102


def test_a_region_of_two_columns_becomes_two() -> None:
    page = np.full((1200, 900, 3), 255, np.uint8)
    for y in range(100, 300, 40):
        for x in (100, 500):
            cv2.putText(page, "a column of text", (x, y), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 0), 2)
    fitted = fitted_to_lines([found(Label.TEXT, (95, 70, 800, 290), 0.9)], page)
    assert [d.box.x0 // 100 for d in fitted] == [1, 5]


def test_an_empty_page_changes_nothing() -> None:
    box = found(Label.TEXT, (150, 270, 560, 312), 0.9)
    assert fitted_to_lines([box], np.full((1200, 900, 3), 255, np.uint8)) == [box]
