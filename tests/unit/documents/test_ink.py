from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageOps

from handler.documents.ink import coverage, ink_mask, ink_share
from handler.geometry import PixelBox
from handler.layout.detector import Pixels

EXAMPLES = Path(__file__).parents[3] / "examples"
TEXT = PixelBox(100, 90, 700, 410)


def sheet(paper: int = 255, ink: int = 0) -> Pixels:
    page = np.full((1200, 900, 3), paper, np.uint8)
    for y in range(120, 420, 40):
        cv2.putText(page, "the words of a printed line", (110, y), cv2.FONT_HERSHEY_SIMPLEX, 1, (ink, ink, ink), 2)
    return page


def test_text_outside_all_boxes_is_missed_and_inside_is_not() -> None:
    mask = ink_mask(sheet())
    inside, outside = coverage(mask, [TEXT], 900, 1200), coverage(mask, [], 900, 1200)
    assert (inside.covered, inside.missed) == (1.0, ())
    assert outside.covered == 0.0
    [area] = outside.missed
    assert abs(area.x0 - 110) < 20
    assert abs(area.y1 - 410) < 20


def test_white_on_black_is_ink_as_well() -> None:
    assert abs(ink_share(ink_mask(sheet(0, 255))) - ink_share(ink_mask(sheet()))) < 0.005


def test_a_sheet_unevenly_lit_carries_no_more_ink() -> None:
    light = np.linspace(1.0, 0.6, 900)[None, :, None]
    dim = (sheet() * light).astype(np.uint8)
    assert abs(ink_share(ink_mask(dim)) - ink_share(ink_mask(sheet()))) < 0.01


def test_the_desk_around_a_photographed_page_is_not_missed_text() -> None:
    with Image.open(EXAMPLES / "photo.jpg") as photo:
        page = np.asarray(ImageOps.exif_transpose(photo).convert("RGB"))
    height, width = page.shape[:2]
    printed = PixelBox(230, 150, width - 230, height - 230)
    assert coverage(ink_mask(page), [printed], width, height).missed == ()
