"""RapidOCR as a reader of pictures: from pixels to lines of text with their boxes.

RapidOCR upscales small pictures to 736 px before it looks for lines, which makes a page read region by region cost
more than the page in one piece. Here every picture is brought to the size at which its letters are found best, and a
picture of a single line is read without looking for lines at all.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from rapidocr import ModelType, OCRVersion, RapidOCR

from handler.geometry import PixelBox
from handler.layout.ink import Picture, ink_mask, marks_of

Quad: TypeAlias = NDArray[np.float32]
"""Four corners, x and y: upper left, upper right, lower right, lower left."""

LETTER_HEIGHT = 10
"""Pixels a letter should have for the line detector; measured: fewer lose lines, more cost time and find no more."""
MOST_DETECTOR_PIXELS = 1600 * 1600
MOST_UPSCALING = 3.0
LINE_LETTERS = 2.2
"""Letter heights from the lowest to the highest ink of a single line, with ascenders and descenders."""
MARGIN = 6
"""Pixels a cut must leave on either side."""
BATCH = 6
"""Runs recognised at once."""
UNREADABLE = 0.3
"""Below this confidence a line is noise."""
BORDER = 8
"""Pixels added around every picture: text that touches the edge is found and read worse."""

OCR_VERSION, MODEL_TYPE = OCRVersion.PPOCRV6, ModelType.SMALL
"""Those inside the wheel of rapidocr 3.10; named here, so that no upgrade changes them unnoticed."""
MODEL_NAME = f"{OCR_VERSION.value} {MODEL_TYPE.value}"
"""What reads the text, as it stands in `produced_by.model`."""
PARAMETERS = {
    "Det.ocr_version": OCR_VERSION,
    "Det.model_type": MODEL_TYPE,
    "Rec.ocr_version": OCR_VERSION,
    "Rec.model_type": MODEL_TYPE,
    "Global.log_level": "warning",
    "Global.use_cls": False,
    "EngineConfig.onnxruntime.intra_op_num_threads": 1,
    "Rec.rec_batch_num": BATCH,
    "Det.limit_type": "max",
    "Det.limit_side_len": 10_000,
    "Det.max_candidates": 10_000,
}
"""One thread per request: several requests at once use the cores better than one request with several threads.

onnxruntime's memory arena stays off: it saves a tenth of the time and keeps twice the memory, 1.2 GB after three pages.
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One run of text and where it stands in the picture."""

    text: str
    box: PixelBox
    score: float


class GivenUp(Exception):
    """Nobody waits for the answer any more."""


class Reader:
    """Loaded models. `lines` may be called from several threads at once."""

    def __init__(self) -> None:
        self._ocr = RapidOCR(params=PARAMETERS)
        logging.getLogger("RapidOCR").setLevel(logging.ERROR)
        self._ocr(np.full((64, 320, 3), 255, np.uint8))
        self._ocr.recognize_txt([np.full((48, 320, 3), 255, np.uint8)])

    def lines(self, picture: Picture, cuts: Sequence[int] = (), given_up: Event | None = None) -> list[Line]:
        """Every run of text, in no particular order. Runs are cut at the `cuts`, x positions of vertical rules.

        The picture is BGR, the channel order RapidOCR reads. Raises `GivenUp` soon after `given_up` is set.
        """
        given_up = given_up or Event()
        padded = np.asarray(cv2.copyMakeBorder(picture, BORDER, BORDER, BORDER, BORDER, cv2.BORDER_REPLICATE), np.uint8)
        marks = marks_of(ink_mask(padded))
        single = single_line(marks)
        if single and not cuts:
            return self._recognised([padded[single.y0 : single.y1, single.x0 : single.x1]], [_moved(single)], given_up)
        quads = self._text_quads(padded, letter_height(marks))
        pieces = [piece for quad in quads for piece in cut_at(quad, [cut + BORDER for cut in cuts])]
        if not pieces:
            return []
        boxes = [_moved(_around(piece)) for piece in pieces]
        return self._recognised(self._ocr.crop_text_regions(padded, np.array(pieces)), boxes, given_up)

    def _text_quads(self, picture: Picture, letter: float) -> list[Quad]:
        scale = min(LETTER_HEIGHT / letter if letter else 1.0, MOST_UPSCALING)
        scale = min(scale, (MOST_DETECTOR_PIXELS / (picture.shape[0] * picture.shape[1])) ** 0.5)
        how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
        found: Any = self._ocr.text_det(cv2.resize(picture, None, fx=scale, fy=scale, interpolation=how))
        return [] if found.boxes is None else [np.asarray(quad / scale, np.float32) for quad in found.boxes]

    def _recognised(self, crops: Sequence[Picture], boxes: Sequence[PixelBox], given_up: Event) -> list[Line]:
        """Runs of like width go through the model together: the shorter ones are padded to the longest."""
        lines: list[Line] = []
        by_shape = sorted(range(len(crops)), key=lambda n: crops[n].shape[1] / crops[n].shape[0])
        for batch in (by_shape[n : n + BATCH] for n in range(0, len(by_shape), BATCH)):
            if given_up.is_set():
                raise GivenUp
            answer: Any = self._ocr.recognize_txt([crops[n] for n in batch])
            lines += [
                Line(text, boxes[n], float(score))
                for n, text, score in zip(batch, answer.txts, answer.scores, strict=True)
                if text.strip() and score >= UNREADABLE
            ]
        return lines


def letter_height(marks: NDArray[np.int32]) -> float:
    """The height of the usual letter in pixels; 0 for a picture without marks."""
    return float(np.median(marks[:, cv2.CC_STAT_HEIGHT])) if len(marks) else 0.0


def single_line(marks: NDArray[np.int32]) -> PixelBox | None:
    """The box of the only line in the picture; None when there may be several, or none."""
    if not len(marks):
        return None
    left, top = marks[:, cv2.CC_STAT_LEFT].min(), marks[:, cv2.CC_STAT_TOP].min()
    right = (marks[:, cv2.CC_STAT_LEFT] + marks[:, cv2.CC_STAT_WIDTH]).max()
    bottom = (marks[:, cv2.CC_STAT_TOP] + marks[:, cv2.CC_STAT_HEIGHT]).max()
    letter = letter_height(marks)
    if bottom - top > LINE_LETTERS * letter:
        return None
    edge = round(letter / 4)
    return PixelBox(max(0, int(left) - edge), max(0, int(top) - edge), int(right) + edge, int(bottom) + edge)


def cut_at(quad: Quad, cuts: Sequence[int]) -> list[Quad]:
    """The quad in pieces, cut at each x that lies well inside it."""
    pieces = []
    for cut in sorted(cuts):
        if quad[:, 0].min() + MARGIN < cut < quad[:, 0].max() - MARGIN:
            top, bottom = _at(quad[0], quad[1], cut), _at(quad[3], quad[2], cut)
            pieces.append(np.array([quad[0], top, bottom, quad[3]], np.float32))
            quad = np.array([top, quad[1], quad[2], bottom], np.float32)
    return [*pieces, quad]


def _at(start: NDArray[np.float32], end: NDArray[np.float32], x: int) -> tuple[float, float]:
    share = (x - start[0]) / (end[0] - start[0])
    return (float(x), float(start[1] + share * (end[1] - start[1])))


def _around(quad: Quad) -> PixelBox:
    x0, y0 = np.floor(quad.min(axis=0)).astype(int).tolist()
    x1, y1 = np.ceil(quad.max(axis=0)).astype(int).tolist()
    return PixelBox(x0, y0, x1, y1)


def _moved(box: PixelBox) -> PixelBox:
    """From the picture with its border to the picture without."""
    return PixelBox(box.x0 - BORDER, box.y0 - BORDER, box.x1 - BORDER, box.y1 - BORDER)
