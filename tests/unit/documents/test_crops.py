import numpy as np
import pytest
import simplejpeg
from glmocr.utils.image_utils import smart_resize
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from handler.documents.crops import FACTOR, MAX_TOKENS, cut, engine_size, figure
from handler.documents.page import CutRequest
from handler.geometry import PixelBox
from handler.schema import Label

ENGINE_RATIO_LIMIT = 200
GLMOCR_PIXELS = 71_372_800
"""`max_pixels` in the configuration that glmocr 0.1.5 ships."""
corner = st.integers(-300, 900)


def page(width: int, height: int, paper: int = 255) -> NDArray[np.uint8]:
    return np.full((height, width, 3), paper, np.uint8)


@given(corner, corner, corner, corner, st.sampled_from([(1, 1), (600, 400), (5, 700), (20_000, 3)]), st.integers(0, 1))
@settings(max_examples=150, deadline=None)
def test_whatever_the_box_the_engine_can_take_the_crops(
    x0: int, y0: int, x1: int, y1: int, size: tuple[int, int], variant: int
) -> None:
    answer = cut(page(*size), CutRequest(PixelBox(x0, y0, x1, y1), Label.TEXT, variant))
    assert answer.crops
    for crop in answer.crops:
        height, width = simplejpeg.decode_jpeg_header(crop.jpeg)[:2]
        assert (width, height) == (crop.width, crop.height)
        assert width % FACTOR == height % FACTOR == 0
        assert min(width, height) >= FACTOR
        assert max(width, height) < ENGINE_RATIO_LIMIT * min(width, height)
        assert width * height <= MAX_TOKENS * FACTOR**2


@given(st.integers(28, 3000), st.integers(28, 3000))
@settings(max_examples=300, deadline=None)
def test_the_size_is_the_one_glmocr_would_send(width: int, height: int) -> None:
    if width * height <= MAX_TOKENS * FACTOR**2 - 3000 * FACTOR:
        assert engine_size(width, height) == smart_resize(2, height, width, t_factor=2, max_pixels=GLMOCR_PIXELS)[::-1]


def test_a_long_strip_becomes_tiles_in_reading_order_cut_where_it_is_quiet() -> None:
    strip = page(6000, 20)
    words = [(start, start + 90) for start in range(0, 6000, 120)]
    for start, end in words:
        strip[4:16, start:end] = 0
    answer = cut(strip, CutRequest(PixelBox(0, 0, 6000, 20), Label.TEXT))
    assert len(answer.crops) > 1
    edges_dark = 0
    for crop in answer.crops:
        pixels = simplejpeg.decode_jpeg(crop.jpeg, "GRAY")
        edges_dark += int(pixels[:, -1].min() < 100)
    assert edges_dark == 0, "no word is cut through"
    upright = cut(np.ascontiguousarray(strip.transpose(1, 0, 2)), CutRequest(PixelBox(0, 0, 20, 6000), Label.TEXT))
    assert [crop.height for crop in upright.crops] == [crop.width for crop in answer.crops]


def test_tiles_without_ink_are_left_out() -> None:
    strip = page(12_000, 20)
    strip[4:16, 20:400] = 0
    answer = cut(strip, CutRequest(PixelBox(0, 0, 12_000, 20), Label.TEXT))
    assert len(answer.crops) == 1
    assert answer.ink > 0


def test_a_small_crop_is_padded_with_its_paper_not_stretched() -> None:
    small = page(10, 8, paper=200)
    small[2:6, 2:8] = 0
    [crop] = cut(small, CutRequest(PixelBox(0, 0, 10, 8), Label.TEXT)).crops
    pixels = simplejpeg.decode_jpeg(crop.jpeg, "GRAY")
    assert crop.width == crop.height
    assert abs(int(pixels[0, 0, 0]) - 200) < 12


def test_the_changed_crop_shows_more_around() -> None:
    first, second = (cut(page(900, 900), CutRequest(PixelBox(100, 100, 500, 500), Label.TEXT, v)) for v in (0, 1))
    assert second.crops[0].width > first.crops[0].width


@pytest.mark.parametrize(("ink", "contrast"), [(0, 1.0), (100, 0.6), (230, 0.1), (255, 0.0)])
def test_contrast_is_that_of_ink_and_paper(ink: int, contrast: float) -> None:
    region = page(200, 100)
    region[40:60, 20:180] = ink
    answer = cut(region, CutRequest(PixelBox(0, 0, 200, 100), Label.TEXT))
    assert answer.contrast == pytest.approx(contrast, abs=0.02)
    assert (answer.ink > 0) is (ink <= 200)


def test_light_text_on_dark_paper_is_ink() -> None:
    region = page(200, 100, paper=20)
    region[40:60, 20:180] = 255
    answer = cut(region, CutRequest(PixelBox(0, 0, 200, 100), Label.TEXT))
    assert answer.ink == pytest.approx(0.16, abs=0.02)


def test_a_figure_keeps_its_size() -> None:
    height, width = simplejpeg.decode_jpeg_header(figure(page(300, 200), PixelBox(-5, 10, 101, 60)))[:2]
    assert (width, height) == (101, 50)


def test_a_grey_region_is_encoded_as_it_would_be_in_colour() -> None:
    grey = np.random.default_rng(3).integers(0, 255, (14, 25, 1), np.uint8).repeat(16, 0).repeat(16, 1)
    page = grey.repeat(3, axis=2)
    tinted = page.copy()
    tinted[33, 71] = (255, 0, 0)
    box = PixelBox(0, 0, page.shape[1], page.shape[0])
    plain, coloured = (
        simplejpeg.decode_jpeg(cut(pixels, CutRequest(box, Label.TEXT)).crops[0].jpeg) for pixels in (page, tinted)
    )
    assert plain.shape == coloured.shape
    assert (plain == plain[:, :, :1]).all()
    assert (coloured != coloured[:, :, :1]).any()
    assert np.abs(plain.astype(int) - coloured).mean() < 1


def test_a_page_of_one_plane_is_cut_like_the_same_page_in_colour() -> None:
    grey = np.random.default_rng(3).integers(0, 255, (200, 300, 1), np.uint8)
    colour = np.ascontiguousarray(np.repeat(grey, 3, axis=2))
    for box in (PixelBox(10, 10, 290, 150), PixelBox(5, 5, 12, 190), PixelBox(0, 0, 300, 2)):
        request = CutRequest(box, Label.TEXT)
        assert cut(grey, request) == cut(colour, request)
    assert simplejpeg.decode_jpeg_header(figure(grey, PixelBox(0, 0, 100, 50)))[2] == "Gray"
