"""Makes regions out of a detector's raw boxes: no duplicates, no half-cut lines, nothing given up.

A small model draws a box twice, draws one around two columns, or cuts off the first letter of every line. Dropped boxes
leave their area to the one that stays; every box grows to the printed lines it mostly holds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

import cv2
import numpy as np

from handler.geometry import PixelBox
from handler.layout.detector import Detection, Pixels
from handler.layout.ink import ink_mask, marks_of
from handler.schema import Label

SAME = 0.6
"""Share of their union two boxes have in common from which they are one region."""
OVERLAPPING = 0.5
"""Share of the smaller of two boxes with one label that lies in the other from which they are one region."""
INSIDE = 0.8
"""Share of a box inside another from which it belongs to it."""
COLUMNS_COVER = 0.6
"""Share of a box that side-by-side boxes inside it cover from which they are the regions and it is not."""
COLUMN_WIDTH = 0.2
"""Share of a region's width a column has, at least; narrower ones are numbers or marks before the lines."""
COLUMN_LINES = 4
"""Fewer printed lines than this are no column."""
LINE_SCALE = 1200
"""Pixels of the longer side on which lines are looked for."""
WORD_GAP = 11
"""Pixels at that scale between two words of a line; a column gutter is wider."""
LINE_HEIGHT = 60
"""Pixels at that scale; taller marks are rules, tables and pictures."""

PICTURE_HANDICAP = 0.3
"""Taken from the score of a picture when it contends with something that would be read."""


def without_duplicates(found: Iterable[Detection]) -> list[Detection]:
    """One detection per region. The better one stays and takes the other's area."""
    detections = list(found)
    detections = [outer for outer in detections if not _wraps_columns(outer, detections)]
    kept: list[Detection] = []
    for detection in sorted(detections, key=_weight, reverse=True):
        while (twin := next((other for other in kept if _belong_together(detection, other)), None)) is not None:
            kept.remove(twin)
            better = max(twin, detection, key=lambda d: _weight(d) * d.box.area)
            detection = replace(better, box=_union(twin.box, detection.box))
        kept.append(detection)
    return kept


def _weight(detection: Detection) -> float:
    return detection.score - (PICTURE_HANDICAP if detection.label is Label.IMAGE else 0.0)


def _belong_together(a: Detection, b: Detection) -> bool:
    shared = _shared(a.box, b.box)
    smaller = min(a.box.area, b.box.area)
    if a.label is b.label and a.label is not Label.TABLE:
        return shared > OVERLAPPING * smaller
    return shared > INSIDE * smaller or shared > SAME * (a.box.area + b.box.area - shared)


def _wraps_columns(outer: Detection, found: Sequence[Detection]) -> bool:
    """Whether `outer` is drawn around columns that were found one by one."""
    inner = [
        d.box
        for d in found
        if d is not outer
        and d.label not in (Label.TABLE, Label.IMAGE)
        and (outer.label is not Label.TABLE or d.score > outer.score)
        and d.box.height > 0.5 * outer.box.height
        and _shared(d.box, outer.box) > INSIDE * d.box.area
    ]
    beside = any(a.x1 <= b.x0 for a in inner for b in inner)
    return beside and sum(_shared(box, outer.box) for box in inner) > COLUMNS_COVER * outer.box.area


def fitted_to_lines(found: Sequence[Detection], page: Pixels) -> list[Detection]:
    """Every region grown to each printed line it holds more than half of, tables to their rules, too.

    A region of text whose lines stand in columns becomes one region for each column.
    """
    marks = printed_marks(page)
    lines = [mark for mark in marks if mark.height < LINE_HEIGHT * max(page.shape[:2]) / LINE_SCALE]
    fitted: list[Detection] = []
    for detection in found:
        match detection.label:
            case Label.IMAGE:
                fitted.append(detection)
            case Label.TEXT:
                grown = _grown(detection.box, lines)
                fitted += [replace(detection, box=box) for box in _columns_in(grown, lines)]
            case label:
                grown = _grown(detection.box, marks if label is Label.TABLE else lines)
                fitted.append(replace(detection, box=grown))
    return fitted


def _columns_in(box: PixelBox, lines: Sequence[PixelBox]) -> list[PixelBox]:
    """The columns of printed lines in a box, if it holds several; else the box itself."""
    columns: list[list[PixelBox]] = []
    for line in sorted((line for line in lines if _shared(line, box) > 0.5 * line.area), key=lambda line: line.x0):
        if columns and line.x0 < max(other.x1 for other in columns[-1]):
            columns[-1].append(line)
        else:
            columns.append([line])
    boxes = [reduce(_union, column) for column in columns]
    wide = all(column.width > COLUMN_WIDTH * box.width for column in boxes)
    tall = all(len(column) >= COLUMN_LINES for column in columns)
    return boxes if len(boxes) > 1 and wide and tall else [box]


def _grown(box: PixelBox, lines: Sequence[PixelBox]) -> PixelBox:
    for line in lines:
        if _shared(line, box) > 0.5 * line.area:
            box = _union(box, line)
    return box


def printed_marks(page: Pixels) -> list[PixelBox]:
    """Boxes around runs of words on one line, and around whatever else is printed, in pixels of the page."""
    height, width = page.shape[:2]
    scale = LINE_SCALE / max(height, width)
    small = cv2.resize(page, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    smeared = cv2.morphologyEx(ink_mask(small), cv2.MORPH_CLOSE, np.ones((1, WORD_GAP), np.uint8))
    return [
        PixelBox(int(x / scale), int(y / scale), int(np.ceil((x + w) / scale)), int(np.ceil((y + h) / scale)))
        for x, y, w, h, _ in marks_of(smeared).tolist()
    ]


def _shared(a: PixelBox, b: PixelBox) -> int:
    return PixelBox(max(a.x0, b.x0), max(a.y0, b.y0), min(a.x1, b.x1), min(a.y1, b.y1)).area


def _union(a: PixelBox, b: PixelBox) -> PixelBox:
    return PixelBox(min(a.x0, b.x0), min(a.y0, b.y0), max(a.x1, b.x1), max(a.y1, b.y1))
