import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.documents.failures import RenderFailure
from handler.documents.scale import DPI_LIMIT, LONG_EDGE_LIMIT, image_scale, page_scale
from handler.schema import Reason

PIXELS = 24_000_000
points = st.floats(0.01, 1_000_000)


def test_an_a4_page_is_rendered_as_asked() -> None:
    scale = page_scale(595.28, 841.89, 200, PIXELS)
    assert (scale.width, scale.height, scale.dpi, scale.warnings) == (1654, 2339, 200, ())


@given(points, points, st.integers(50, 600))
def test_every_page_stays_within_the_limits_and_says_at_what_resolution(width: float, height: float, dpi: int) -> None:
    scale = page_scale(width, height, dpi, PIXELS)
    assert 1 <= scale.width * scale.height <= PIXELS
    assert max(scale.width, scale.height) <= LONG_EDGE_LIMIT
    assert scale.dpi <= DPI_LIMIT + 0.01
    reasons = {warning.reason for warning in scale.warnings}
    expected = {Reason.PAGE_SCALED_DOWN} if scale.dpi < dpi - 0.5 else set()
    expected |= {Reason.PAGE_SCALED_UP} if scale.dpi > dpi + 0.5 else set()
    assert reasons == expected


@pytest.mark.parametrize("size", [(0, 100), (100, -1), (math.inf, 5), (math.nan, 5)])
def test_a_page_without_an_extent_fails(size: tuple[float, float]) -> None:
    with pytest.raises(RenderFailure) as caught:
        page_scale(*size, 200, PIXELS)
    assert caught.value.reason is Reason.PAGE_DAMAGED


def test_pictures_are_only_ever_made_smaller() -> None:
    assert image_scale(100, 100, PIXELS) == 1
    assert image_scale(12_000, 8_000, PIXELS) == pytest.approx(0.5)
    assert image_scale(60_000, 10, PIXELS) == pytest.approx(0.5)
