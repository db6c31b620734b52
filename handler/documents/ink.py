"""Where the ink is: how much a page or region carries, and what no region covers.

Ink is what differs from the paper, the paper being the most usual grey around; so white on black is ink as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from handler.documents.buffers import COLOUR, Mask, mask_shape
from handler.documents.page import Coverage
from handler.geometry import PixelBox
from handler.layout.detector import Pixels

INK_STEP = 40
"""Grey levels between paper and ink. Bleed-through and JPEG noise stay below, pencil above."""
REGION_SAMPLES = 25_000
"""Pixels of a region that are looked at."""

_CONTRAST_PIXELS = 20
_BOX_MARGIN = 4 / 1000
"""Strokes reach out of boxes by this share of the page's longer side."""
_JOIN = 12 / 1000
"""Ink closer than this share of the page's longer side belongs together: words and lines of one paragraph."""
_SCRAP = 16 / 1000
"""What is no longer than this and touches a box is the end of a stroke inside it."""
_THIN = 3 / 1000
_EDGE = 6 / 1000
_FRAME = 0.06
"""An area filled less than this is a frame: of a box, or the edge of a photographed sheet. Its content is in others."""
_SOLID = 0.85
_BAR = 50 / 1000
_SMALLEST = 6 / 1000
_MOST_AREAS = 24
_PAD = 3
_PAPER_STEP = 8
_PAPER_SHARE = 20
"""The paper's grey is looked for within this part of the longer side, in each direction."""
_PAPER_REACH = 15
"""The same in pixels of the small grid, at most: OpenCV 5.0 refuses wide medians, as a long strip would ask for."""

Area: TypeAlias = tuple[int, int, int, int]
"""x0, y0, x1, y1 in pixels of a mask."""


@dataclass(frozen=True, slots=True)
class Inked:
    """What one look at some pixels told."""

    ink: float
    """Share of pixels that carry ink, 0 to 1."""
    contrast: float
    """Difference between paper and the strongest ink, 0 to 1."""
    paper: int
    """Grey level of the paper, 0 to 255."""


def measure(region: Pixels) -> Inked:
    """Ink, contrast and paper of a region, by a sample of its pixels."""
    height, width = region.shape[:2]
    step = max(1, round((width * height / REGION_SAMPLES) ** 0.5))
    histogram = _histogram(_grey(region, max(1, height // step), max(1, width // step)))
    paper = int(histogram.argmax())
    levels = np.abs(np.arange(256) - paper)
    ink = float(histogram[levels > INK_STEP].sum() / histogram.sum())
    by_difference = np.bincount(levels, weights=histogram, minlength=256)
    strong = np.flatnonzero(by_difference[::-1].cumsum() >= min(_CONTRAST_PIXELS, histogram.sum()))
    return Inked(ink, float(255 - strong[0]) / 255, paper)


def ink_mask(page: Pixels) -> Mask:
    """Where a page carries ink."""
    grey = _grey(page, *mask_shape(page.shape[1], page.shape[0]))
    _, mask = cv2.threshold(cv2.absdiff(grey, _paper(grey)), INK_STEP, 255, cv2.THRESH_BINARY)
    return np.asarray(mask, np.uint8)


def ink_share(mask: Mask) -> float:
    """Share of a page's pixels that carry ink, 0 to 1."""
    return cv2.countNonZero(mask) / mask.size


def coverage(mask: Mask, boxes: Sequence[PixelBox], width: int, height: int) -> Coverage:
    """How much of the ink of a page of `width` x `height` pixels lies inside `boxes`, and which areas are missed."""
    total = cv2.countNonZero(mask)
    if total == 0:
        return Coverage(1.0)
    mask = mask.copy()
    step = width / mask.shape[1]
    erased = [_erase(mask, box.clamped(width, height), step) for box in boxes]
    missed = cv2.countNonZero(mask)
    if missed == 0:
        return Coverage(1.0)
    covered = 1 - missed / total
    areas = (_on_page(area, step, width, height) for area in _areas(mask, erased))
    return Coverage(covered, tuple(sorted(areas, key=lambda box: (box.y0, box.x0))))


def _erase(mask: Mask, box: PixelBox, step: float) -> Area:
    """Take a box and the strokes that reach out of it off the mask; returns what was taken."""
    margin = round(_BOX_MARGIN * max(mask.shape))
    x0, y0 = (max(0, int(corner / step) - margin) for corner in (box.x0, box.y0))
    x1, y1 = (int(corner / step) + margin + 1 for corner in (box.x1, box.y1))
    mask[y0:y1, x0:x1] = 0
    return x0, y0, x1, y1


def _areas(mask: Mask, erased: Sequence[Area]) -> list[Area]:
    """Areas of ink that belongs together. Specks, rules, scan edges and the ends of erased strokes are left out."""
    longer = max(mask.shape)
    reach = max(3, round(_JOIN * longer))
    joined = cv2.morphologyEx(mask, cv2.MORPH_CLOSE, np.ones((reach, reach), np.uint8), borderValue=0)
    _, _, stats, _ = cv2.connectedComponentsWithStats(joined, connectivity=8)
    found: list[tuple[Area, int]] = [((x, y, x + w, y + h), filled) for x, y, w, h, filled in stats[1:].tolist()]
    scrap = round(_SCRAP * longer)
    kept = [
        area
        for area, filled in found
        if _worth_reading(area, filled, mask.shape)
        and not _solid(area, mask)
        and (_length(area) > scrap or not any(_near(area, taken, 2) for taken in erased))
    ]
    merged = _merged(kept, reach)
    return merged if len(merged) <= _MOST_AREAS else [_united(merged)]


def _worth_reading(area: Area, filled: int, shape: tuple[int, ...]) -> bool:
    """`filled`: pixels of joined ink. A rule on a crooked scan has a tall box, but is as thin as ever."""
    x0, y0, x1, y1 = area
    height, width = shape[:2]
    at_edge = x0 == 0 or y0 == 0 or x1 == width or y1 == height
    thinnest = max(2, round((_EDGE if at_edge else _THIN) * max(shape)))
    if filled < _FRAME * (x1 - x0) * (y1 - y0):
        return False
    thickness = min(x1 - x0, y1 - y0, filled / _length(area))
    return thickness >= thinnest and _length(area) >= max(4, round(_SMALLEST * max(shape)))


def _solid(area: Area, mask: Mask) -> bool:
    """Whether a long area is all ink: a scan's black edge, a bar, a thick rule. Text has gaps; a lone 1 is short."""
    x0, y0, x1, y1 = area
    inside = mask[y0:y1, x0:x1]
    return _length(area) > _BAR * max(mask.shape) and cv2.countNonZero(inside) > _SOLID * inside.size


def _merged(areas: Sequence[Area], reach: int) -> list[Area]:
    """Unite areas that overlap or nearly touch, until none do."""
    pending, done = list(areas), list[Area]()
    while pending:
        area = pending.pop()
        near = [other for other in pending if _near(area, other, reach)]
        if near:
            pending = [*(other for other in pending if other not in near), _united([area, *near])]
        else:
            done.append(area)
    return done


def _near(one: Area, other: Area, reach: int) -> bool:
    return (
        one[0] - reach < other[2]
        and other[0] - reach < one[2]
        and one[1] - reach < other[3]
        and other[1] - reach < one[3]
    )


def _united(areas: Sequence[Area]) -> Area:
    x0, y0, x1, y1 = zip(*areas, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def _length(area: Area) -> int:
    return max(area[2] - area[0], area[3] - area[1])


def _on_page(area: Area, step: float, width: int, height: int) -> PixelBox:
    x0, y0, x1, y1 = area
    return PixelBox(
        int((x0 - _PAD) * step), int((y0 - _PAD) * step), int((x1 + _PAD) * step), int((y1 + _PAD) * step)
    ).clamped(width, height)


def _grey(pixels: Pixels, rows: int, columns: int) -> NDArray[np.uint8]:
    colour = pixels.shape[2] == COLOUR
    if (rows, columns) != pixels.shape[:2]:
        pixels = np.asarray(cv2.resize(pixels, (columns, rows), interpolation=cv2.INTER_NEAREST), np.uint8)
    return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY) if colour else pixels.reshape(rows, columns), np.uint8)


def _paper(grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The usual grey around each pixel: a photographed page is not lit evenly, and the desk beside it is not ink."""
    height, width = grey.shape
    small = cv2.resize(grey, (-(-width // _PAPER_STEP), -(-height // _PAPER_STEP)), interpolation=cv2.INTER_NEAREST)
    usual = cv2.medianBlur(small, 2 * min(max(small.shape) // _PAPER_SHARE, _PAPER_REACH) + 1)
    return np.asarray(cv2.resize(usual, (width, height), interpolation=cv2.INTER_LINEAR), np.uint8)


def _histogram(grey: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.asarray(cv2.calcHist([grey], [0], None, [256], [0, 256]).ravel(), np.float32)
