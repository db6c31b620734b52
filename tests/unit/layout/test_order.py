from hypothesis import given
from hypothesis import strategies as st

from handler.geometry import PixelBox
from handler.layout.order import reading_order


def test_rows_come_from_the_top() -> None:
    boxes = [PixelBox(0, 200, 500, 300), PixelBox(0, 0, 500, 90), PixelBox(0, 100, 500, 190)]
    assert reading_order(boxes) == [1, 2, 0]


def test_a_column_is_read_to_its_end_before_the_next() -> None:
    title = PixelBox(100, 0, 900, 50)
    left = [PixelBox(0, y, 480, y + 90) for y in (100, 200, 300)]
    right = [PixelBox(520, y, 1000, y + 90) for y in (100, 200, 300)]
    boxes = [title, left[0], right[0], left[1], right[1], left[2], right[2]]
    assert reading_order(boxes) == [0, 1, 3, 5, 2, 4, 6]


def test_columns_of_uneven_length_stay_columns() -> None:
    left = [PixelBox(0, y, 480, y + 90) for y in (0, 100, 200)]
    right = [PixelBox(520, y, 1000, y + 90) for y in (0, 100)]
    assert reading_order([*left, *right]) == [0, 1, 2, 3, 4]


def test_a_short_heading_below_columns_comes_after_them() -> None:
    boxes = [
        PixelBox(0, 0, 480, 90),
        PixelBox(520, 0, 1000, 90),
        PixelBox(0, 120, 150, 150),
        PixelBox(0, 170, 1000, 300),
    ]
    assert reading_order(boxes) == [0, 1, 2, 3]


def test_staggered_columns() -> None:
    left = [PixelBox(0, 0, 480, 100), PixelBox(0, 110, 480, 300)]
    right = [PixelBox(520, 0, 1000, 150), PixelBox(520, 160, 1000, 300)]
    assert reading_order([right[1], left[1], right[0], left[0]]) == [3, 1, 2, 0]


def test_a_full_width_block_ends_the_columns_above_it() -> None:
    upper = [PixelBox(0, 0, 480, 90), PixelBox(520, 0, 1000, 90)]
    wide = PixelBox(0, 100, 1000, 190)
    lower = [PixelBox(0, 200, 480, 290), PixelBox(520, 200, 1000, 290)]
    assert reading_order([*lower, wide, *upper]) == [3, 4, 2, 0, 1]


def test_boxes_that_touch_a_little_are_still_rows() -> None:
    assert reading_order([PixelBox(0, 95, 500, 200), PixelBox(0, 0, 500, 100)]) == [1, 0]


boxes = st.builds(
    lambda x, y, w, h: PixelBox(x, y, x + w, y + h),
    st.integers(0, 900),
    st.integers(0, 900),
    st.integers(1, 400),
    st.integers(1, 400),
)


@given(st.lists(boxes, max_size=12))
def test_every_box_is_read_exactly_once(found: list[PixelBox]) -> None:
    assert sorted(reading_order(found)) == list(range(len(found)))
