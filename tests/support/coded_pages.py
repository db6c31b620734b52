"""Pages that say who they are: a grid of black and white cells holds document, page and a check byte.

Whoever gets the picture of a whole page can tell which one it is, however it was scaled: a page that ends up in the
wrong place, or another document's text, is seen at once.
"""

import random
from collections.abc import Iterable
from pathlib import Path

import cv2
import numpy as np
import pymupdf
from numpy.typing import NDArray

COLUMNS, ROWS = 8, 5
"""40 cells: 16 bits document, 16 bits page, 8 bits check."""
CELL_PT, MARK_PT, MARGIN_PT, FRAME_PT = 30.0, 10.0, 40.0, 4.0
SIZES = (0.5, 0.7, 1.0)
DARK = 128
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo", "lima")


class Unreadable(ValueError):
    """The picture holds no whole code."""


def write_pdf(path: Path, document: int, pages: int, *, blank: Iterable[int] = (), blocks: int = 1) -> Path:
    """A PDF whose pages carry their code, but for the `blank` ones.

    With `blocks` that many codes of several sizes stand below each other, each its own (`codes_of`).
    """
    pdf = pymupdf.open()
    empty = set(blank)
    for number in range(1, pages + 1):
        sizes = [1.0] if blocks == 1 else random.Random(document << 16 | number).choices(SIZES, k=blocks)
        height = MARGIN_PT + sum(size * ROWS * CELL_PT + MARGIN_PT for size in sizes)
        page = pdf.new_page(width=2 * MARGIN_PT + COLUMNS * CELL_PT, height=height)
        top = MARGIN_PT
        for code, size in zip(codes_of(number, blocks), sizes, strict=True):
            if number not in empty:
                _draw(page, _bits(document, code), top, size)
            top += size * ROWS * CELL_PT + MARGIN_PT
    pdf.save(path, deflate=True)
    pdf.close()
    return path


def codes_of(page: int, blocks: int) -> list[int]:
    """What the blocks of a page say in the place of its number; a single one says the number itself."""
    return [page] if blocks == 1 else [page * blocks + block for block in range(blocks)]


def text_of(document: int, page: int) -> str:
    """What an engine says to this page: enough that the page counts as read, and no other page says the same."""
    words = random.Random(document << 16 | page)
    return f"document {document} page {page}: " + " ".join(words.choices(WORDS, k=150))


def read_code(jpeg: bytes) -> tuple[int, int]:
    """Document and page of the picture. Raises `Unreadable`."""
    gray = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_GRAYSCALE)
    if gray is None:
        raise Unreadable("not a picture")
    dark = np.argwhere(np.asarray(gray) < DARK)
    if not len(dark):
        raise Unreadable("nothing on it")
    return _decode(np.asarray(gray), dark)


def _decode(gray: NDArray[np.uint8], dark: NDArray[np.intp]) -> tuple[int, int]:
    (top, left), (bottom, right) = dark.min(axis=0), dark.max(axis=0) + 1
    width_pt, height_pt = COLUMNS * CELL_PT + 2 * FRAME_PT, ROWS * CELL_PT + 2 * FRAME_PT
    bits = 0
    for cell in range(COLUMNS * ROWS):
        row, column = divmod(cell, COLUMNS)
        y = top + (bottom - top) * (FRAME_PT + (row + 0.5) * CELL_PT) / height_pt
        x = left + (right - left) * (FRAME_PT + (column + 0.5) * CELL_PT) / width_pt
        bits = bits << 1 | int(gray[int(y), int(x)] < DARK)
    document, page, check = bits >> 24, bits >> 8 & 0xFFFF, bits & 0xFF
    if bits != _bits(document, page):
        raise Unreadable(f"check {check:#04x} does not fit document {document} page {page}")
    return document, page


def _bits(document: int, page: int) -> int:
    check = (document * 31 + page * 17 + 0x5A) & 0xFF
    return document << 24 | page << 8 | check


def _draw(page: pymupdf.Page, bits: int, top: float, size: float) -> None:
    cell_pt, mark_pt, frame_pt = size * CELL_PT, size * MARK_PT, size * FRAME_PT
    right, bottom = MARGIN_PT + COLUMNS * cell_pt, top + ROWS * cell_pt
    inner = pymupdf.Rect(MARGIN_PT, top, right, bottom)
    code = pymupdf.Rect(MARGIN_PT - frame_pt, top - frame_pt, right + frame_pt, bottom + frame_pt)
    shape = page.new_shape()
    shape.draw_rect(code)
    shape.finish(fill=(0, 0, 0), width=0)
    shape.draw_rect(inner)
    shape.finish(fill=(1, 1, 1), width=0)
    for cell in range(COLUMNS * ROWS):
        if bits >> (COLUMNS * ROWS - 1 - cell) & 1:
            row, column = divmod(cell, COLUMNS)
            x = inner.x0 + column * cell_pt + (cell_pt - mark_pt) / 2
            y = inner.y0 + row * cell_pt + (cell_pt - mark_pt) / 2
            shape.draw_rect(pymupdf.Rect(x, y, x + mark_pt, y + mark_pt))
    shape.finish(fill=(0, 0, 0), width=0)
    shape.commit()
