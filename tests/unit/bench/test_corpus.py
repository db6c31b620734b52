import io
import random
from collections.abc import Callable

import numpy as np
import pymupdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas

from bench.corpus.marks import PAGE_HEIGHT, PAGE_WIDTH, draw_mark, read_mark
from bench.corpus.pages import PageWriter, agreement_page, mixed_page
from handler.layout.detector import Pixels


def drawn(draw: Callable[[Canvas], object], dpi: int) -> Pixels:
    held = io.BytesIO()
    canvas = Canvas(held, pagesize=(PAGE_WIDTH, PAGE_HEIGHT))
    draw(canvas)
    canvas.save()
    with pymupdf.open(stream=held.getvalue()) as document:
        pixmap = document[0].get_pixmap(dpi=dpi, alpha=False)
        return np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width, 3)


@given(st.integers(0, 2047), st.sampled_from([100, 200, 300]))
@settings(max_examples=15, deadline=None)
def test_a_mark_is_read_back_at_any_resolution(number: int, dpi: int) -> None:
    assert read_mark(drawn(lambda canvas: draw_mark(canvas, number), dpi)) == number


def test_a_page_without_a_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="no page mark"):
        read_mark(np.full((842, 595, 3), 255, np.uint8))


@pytest.mark.parametrize(("number", "regions"), [(0, 12), (3, 12), (6, 12), (1, 16), (5, 16)])
def test_all_ink_lies_in_the_regions_and_they_do_not_overlap(number: int, regions: int) -> None:
    draw = random.Random(number)
    writers: list[PageWriter] = []

    def page(canvas: Canvas) -> None:
        writers.append(PageWriter(canvas, number, draw))
        (mixed_page if regions == 16 else agreement_page)(writers[0], draw, number)

    pixels = drawn(page, 100)
    found = writers[0].regions
    assert len(found) == regions
    height, width = pixels.shape[:2]
    inside = np.zeros((height, width), np.uint8)
    for region in found:
        x0, y0, x1, y1 = region.box
        inside[y0 * height // 1000 : y1 * height // 1000, x0 * width // 1000 : x1 * width // 1000] += 1
    ink = pixels.min(axis=2) < 128
    assert ink.any()
    assert not (ink & (inside == 0)).any()
    assert inside.max() == 1
