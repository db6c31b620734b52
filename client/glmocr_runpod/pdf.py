"""PDF work through PDFium: count, cut by pages without touching a stream, and look at pages to compare them.

Needs the extra `pdf`. PDFium is single-threaded, so one lock covers every call.
"""

import importlib.util
import io
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from glmocr_runpod.identity import sha256

HEADER_WITHIN = 1024
INFO_WITHIN = 4096
"""PDFium writes the document information as its third object."""
GRID = 8
"""Ink is compared in GRID x GRID fields of a page."""
LOOK_PX = 256
"""Longer side of the small picture a page is judged by."""
INK_TOLERANCE = 0.03
"""How much darker or lighter a field may be, of full black; resampling a scan from 600 to 100 DPI moves it by 0.01."""
FAINT = 0.004
"""A page whose mean ink falls below a third of what it was, from more than this, has lost its content."""

_lock = threading.Lock()
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_ID = re.compile(rb"/ID\s*\[\s*<([0-9A-F]{32})>\s*<([0-9A-F]{32})>\s*\]\s*>>\s*startxref\s+\d+\s+%%EOF\s*\Z")
_DATE = re.compile(rb"/CreationDate\s*\(D:(\d{14})")


class PdfError(Exception):
    """PDFium cannot open or rewrite the file."""


@dataclass(frozen=True, slots=True)
class PageLook:
    """What one page looks like, coarsely."""

    width: float
    """Points."""
    height: float
    rotation: int
    ink: tuple[float, ...]
    """Mean darkness of each field, 0 to 1, row by row."""

    @property
    def mean(self) -> float:
        """Mean darkness of the page."""
        return sum(self.ink) / len(self.ink)


def available() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("pypdfium2") is not None


def is_pdf(data: bytes) -> bool:
    """By its bytes; readers look for the header in the first 1024."""
    return b"%PDF-" in data[:HEADER_WITHIN]


def count_pages(data: bytes) -> int:
    """Raises `PdfError`, also for a file that needs a password."""
    with _opened(data) as document:
        return len(document)


def page_objects(data: bytes) -> int:
    """How many pages stand in the file outside compressed objects. PDFium believes the page tree's own count."""
    return len(_PAGE.findall(data))


def cut(data: bytes, pages: Sequence[int]) -> bytes:
    """A PDF of those pages (from 1), every content and image stream byte for byte; the same input gives the same bytes.

    Raises `PdfError`.
    """
    import pypdfium2

    with _opened(data) as document:
        part = pypdfium2.PdfDocument.new()
        try:
            part.import_pages(document, [page - 1 for page in pages])
            written = io.BytesIO()
            part.save(written)
        except pypdfium2.PdfiumError as error:
            raise PdfError(str(error)) from error
        finally:
            part.close()
    return _without_time(written.getvalue())


def looks(data: bytes, pages: Sequence[int] | None = None) -> list[PageLook]:
    """What the pages (from 1; all) look like. Raises `PdfError`."""
    with _opened(data) as document:
        chosen = range(len(document)) if pages is None else [page - 1 for page in pages]
        return [_look(document, index) for index in chosen]


def is_bilevel(data: bytes) -> bool:
    """Whether every picture in the file has one bit per pixel; such files only grow when they are rewritten."""
    import pypdfium2.raw as raw

    depths = []
    with _opened(data) as document:
        for index in range(len(document)):
            page = document[index]
            pictures = page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE])
            depths += [picture.get_metadata().bits_per_pixel for picture in pictures]
            page.close()
    return bool(depths) and all(depth == 1 for depth in depths)


def same(before: PageLook, after: PageLook) -> str | None:
    """None when both show the same page, else what differs."""
    if before.rotation != after.rotation:
        return f"it is turned by {after.rotation} instead of {before.rotation} degrees"
    if abs(before.width - after.width) > 1 or abs(before.height - after.height) > 1:
        return (
            f"it is {after.width:.0f} x {after.height:.0f} points instead of {before.width:.0f} x {before.height:.0f}"
        )
    if before.mean > FAINT and after.mean < before.mean / 3:
        return "its ink is gone"
    worst = max(abs(a - b) for a, b in zip(before.ink, after.ink, strict=True))
    return f"its ink differs by {worst:.0%} in one place" if worst > INK_TOLERANCE else None


@contextmanager
def _opened(data: bytes) -> Iterator[Any]:
    import pypdfium2

    with _lock:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            raise PdfError(str(error)) from error
        try:
            yield document
        except pypdfium2.PdfiumError as error:
            raise PdfError(str(error)) from error
        finally:
            document.close()


def _look(document: Any, index: int) -> PageLook:
    page = document[index]
    width, height = page.get_size()
    rotation = page.get_rotation()
    bitmap = page.render(scale=LOOK_PX / max(width, height, 1.0), grayscale=True)
    pixels, stride = bytes(bitmap.buffer), bitmap.stride
    rows = [pixels[y * stride : y * stride + bitmap.width] for y in range(bitmap.height)]
    bitmap.close()
    page.close()
    return PageLook(width, height, rotation, tuple(_fields(rows)))


def _fields(rows: list[bytes]) -> Iterator[float]:
    height, width = len(rows), len(rows[0]) if rows else 0
    for top, bottom in _bounds(height):
        for left, right in _bounds(width):
            light = sum(sum(row[left:right]) for row in rows[top:bottom])
            area = (bottom - top) * (right - left)
            yield 1 - light / (255 * area) if area else 0.0


def _bounds(length: int) -> list[tuple[int, int]]:
    return [(length * i // GRID, length * (i + 1) // GRID) for i in range(GRID)]


def _without_time(data: bytes) -> bytes:
    """PDFium writes the time and a random id; both are replaced by what the file's content gives."""
    fixed = bytearray(data)
    stamp = _DATE.search(data, 0, INFO_WITHIN)
    if stamp:
        fixed[stamp.start(1) : stamp.end(1)] = b"20000101000000"
    trailer = _ID.search(data)
    if trailer:
        for group in (1, 2):
            fixed[trailer.start(group) : trailer.end(group)] = b"0" * 32
        name = sha256(bytes(fixed))[:32].upper().encode()
        for group in (1, 2):
            fixed[trailer.start(group) : trailer.end(group)] = name
    return bytes(fixed)
