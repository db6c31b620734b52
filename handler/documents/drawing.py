"""One page into shared memory, by whichever engine draws it. Runs in render processes only."""

from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np

from handler.documents import images, mupdf, pdfium
from handler.documents.buffers import COLOUR, GREY, MappedPage, mapped_page
from handler.documents.complaints import page_warnings, tell_of_loss
from handler.documents.failures import RenderFailure
from handler.documents.ink import ink_mask, ink_share
from handler.documents.mupdf import MuPdf
from handler.documents.page import OpenedDocument, StagedDocument
from handler.documents.pdfium import Pdfium
from handler.documents.scale import Scale, page_scale
from handler.documents.scans import draw_scan
from handler.documents.work import Drawn, PageJob, PdfEngine
from handler.errors import DocumentUnreadable
from handler.schema import DocumentKind, PageWarning, Reason

OPEN_DOCUMENTS = 4
"""Documents one render process keeps open."""
MORE_INK = 1.2
"""The second engine's page is taken when the first complained and it shows this many times the ink."""

_TURNS = {90: cv2.ROTATE_90_CLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_COUNTERCLOCKWISE}


def open_document(document: StagedDocument, engine: PdfEngine) -> OpenedDocument:
    """Open and count pages. Raises `DocumentUnreadable`, or the `InputError` about its password or size."""
    if document.kind is not DocumentKind.PDF:
        return images.open_picture(document.path, document.kind)
    try:
        if engine is PdfEngine.PDFIUM:
            return OpenedDocument(_pdfium(document).page_count, repaired=True)
        opened = _mupdf(document)
    except (*mupdf.FAILURES, *pdfium.FAILURES) as error:
        why = _without_path(error, document)
        raise DocumentUnreadable(f"the PDF cannot be opened; if a viewer can, print it to a new PDF ({why})") from None
    if opened.page_count == 0:
        raise DocumentUnreadable("the PDF has no pages")
    return OpenedDocument(opened.page_count, opened.repaired, opened.warnings)


def draw_page(job: PageJob) -> Drawn:
    """Draw one page. Raises `RenderFailure`."""
    if job.document.kind is not DocumentKind.PDF:
        return _draw_picture(job)
    try:
        if job.engine is PdfEngine.PDFIUM:
            return _draw_second(job)
        return _draw_first(job)
    except (*mupdf.FAILURES, *pdfium.FAILURES) as error:
        reason = Reason.RENDER_MEMORY if "malloc" in str(error) else Reason.PAGE_DAMAGED
        raise RenderFailure(reason, f"the page cannot be drawn: {_without_path(error, job.document)}") from None


def _draw_first(job: PageJob) -> Drawn:
    opened = _mupdf(job.document)
    decoded = _decoded_scan(job, opened)
    drawn, complaints = _drawn_page(job, opened) if decoded is None else (decoded, ())
    white = drawn.ink == 0
    doubtful = white and (complaints or opened.repaired or opened.has_pictures(job.page - 1))
    if not (doubtful or tell_of_loss(complaints)):
        return drawn
    second = _other_reading(job, drawn)
    if second is not None:
        return second
    if white and not _white_by_right(opened, job.page - 1, complaints):
        raise RenderFailure(Reason.PAGE_DAMAGED, f"both engines draw a white page: {_first(complaints)}")
    return drawn


def _drawn_page(job: PageJob, opened: MuPdf) -> tuple[Drawn, tuple[str, ...]]:
    """The page as MuPDF draws it, and what MuPDF complained about."""
    scale, width, height = _size(opened, job)
    contents = opened.read(job.page - 1)
    channels = GREY if contents.grey else COLOUR
    with mapped_page(job.handle, width, height, channels) as target:
        complaints = contents.complaints + opened.draw(contents, scale, job.angle, target.pixels)
        ink = _marked(target)
    complaints = tuple(dict.fromkeys(complaints))
    return Drawn(width, height, channels, scale.dpi, ink, scale.warnings + page_warnings(complaints)), complaints


def _decoded_scan(job: PageJob, opened: MuPdf) -> Drawn | None:
    """The page as its one picture, decoded; None where it is no such page or the picture is damaged."""
    scan = None if job.angle else opened.scan(job.page - 1)
    if scan is None:
        return None
    scale, width, height = _size(opened, job)
    channels = GREY if scan.grey else COLOUR
    with mapped_page(job.handle, width, height, channels) as target:
        if not draw_scan(scan, target.pixels):
            return None
        return Drawn(width, height, channels, scale.dpi, _marked(target), scale.warnings)


def _white_by_right(opened: MuPdf, page: int, complaints: tuple[str, ...]) -> bool:
    if tell_of_loss(complaints) or (complaints and opened.has_pictures(page)):
        return False
    return opened.white_by_right(page)


def _other_reading(job: PageJob, first: Drawn) -> Drawn | None:
    """The page by the second engine, if it shows clearly more; then it replaces the first in the shared memory."""
    other = np.empty((first.height, first.width, COLOUR), np.uint8)
    try:
        opened = _pdfium(job.document)
        scale, width, height = _size(opened, job)
        if (height, width) != other.shape[:2]:
            return None
        opened.draw(job.page - 1, scale, job.angle, other)
    except (*pdfium.FAILURES, RenderFailure):
        return None
    if ink_share(ink_mask(other)) <= first.ink * MORE_INK:
        return None
    with mapped_page(job.handle, first.width, first.height, COLOUR) as target:
        np.copyto(target.pixels, other)
        ink = _marked(target)
    return replace(first, channels=COLOUR, ink=ink, warnings=(*first.warnings, _second_renderer("shows more")))


def _draw_second(job: PageJob) -> Drawn:
    opened = _pdfium(job.document)
    scale, width, height = _size(opened, job)
    with mapped_page(job.handle, width, height, COLOUR) as target:
        opened.draw(job.page - 1, scale, job.angle, target.pixels)
        ink = _marked(target)
    if ink == 0:
        raise RenderFailure(Reason.PAGE_DAMAGED, "one engine cannot draw the page, the other draws it white")
    return Drawn(width, height, COLOUR, scale.dpi, ink, (*scale.warnings, _second_renderer("alone can draw the page")))


def _draw_picture(job: PageJob) -> Drawn:
    picture = images.read_picture(job.document.path, job.document.kind, job.page - 1, job.max_pixels)
    pixels = picture.pixels
    height, width = pixels.shape[:2]
    if job.angle in (90, 270):
        height, width = width, height
    with mapped_page(job.handle, width, height, COLOUR) as target:
        if job.angle:
            cv2.rotate(pixels, _TURNS[job.angle], dst=target.pixels)
        else:
            np.copyto(target.pixels, pixels)
        return Drawn(width, height, COLOUR, None, _marked(target), picture.warnings)


def _marked(page: MappedPage) -> float:
    """Write the page's ink mask; returns the share of ink."""
    np.copyto(page.mask, ink_mask(page.pixels))
    return ink_share(page.mask)


def _size(opened: MuPdf | Pdfium, job: PageJob) -> tuple[Scale, int, int]:
    scale = page_scale(*opened.size(job.page - 1), job.dpi, job.max_pixels)
    if job.angle in (90, 270):
        return scale, scale.height, scale.width
    return scale, scale.width, scale.height


def _without_path(error: Exception, document: StagedDocument) -> str:
    return str(error).replace(str(document.path), "document")


def _second_renderer(why: str) -> PageWarning:
    return PageWarning(reason=Reason.SECOND_RENDERER, message=f"drawn by PDFium, which {why}")


def _first(complaints: tuple[str, ...]) -> str:
    return complaints[0] if complaints else "it has pictures or parts that cannot be read"


@lru_cache(OPEN_DOCUMENTS)
def _mupdf(document: StagedDocument) -> MuPdf:
    return MuPdf(document.path, document.password)


@lru_cache(OPEN_DOCUMENTS)
def _pdfium(document: StagedDocument) -> Pdfium:
    return Pdfium(document.path, document.password)
