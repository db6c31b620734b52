"""A page's number as a row of black and white squares in its title, so that a fake layout model knows the page.

The squares lie inside the first region, so they add no ink outside the regions.
"""

import numpy as np
from numpy.typing import NDArray
from reportlab.pdfgen.canvas import Canvas

PAGE_WIDTH = 595.0
PAGE_HEIGHT = 842.0
LEFT = 50.0
TOP = 44.0
SQUARE = 4.0
NUMBER_BITS = 11
CHECK_BITS = 5
BITS = 1 + NUMBER_BITS + CHECK_BITS
"""A first square that is always black, the number, its checksum."""


def _code(number: int) -> int:
    return (1 << NUMBER_BITS | number) << CHECK_BITS | number % 31


def draw_mark(canvas: Canvas, number: int) -> None:
    """Draw page `number` (below 2048) at its place; the canvas has its origin at the lower left, in points."""
    for bit in range(BITS):
        if _code(number) >> (BITS - 1 - bit) & 1:
            canvas.rect(LEFT + bit * SQUARE, PAGE_HEIGHT - TOP - SQUARE, SQUARE, SQUARE, stroke=0, fill=1)


def read_mark(pixels: NDArray[np.uint8]) -> int:
    """The page's number, from its pixels at any resolution. Raises `ValueError` if there is no sound mark."""
    height, width = pixels.shape[:2]
    y = round((TOP + SQUARE / 2) * height / PAGE_HEIGHT)
    code = 0
    for bit in range(BITS):
        x = round((LEFT + (bit + 0.5) * SQUARE) * width / PAGE_WIDTH)
        code = code << 1 | int(pixels[y - 1 : y + 2, x - 1 : x + 2].mean() < 128)
    number = code >> CHECK_BITS & ((1 << NUMBER_BITS) - 1)
    if _code(number) != code:
        raise ValueError(f"no page mark: read {code:b}")
    return number
