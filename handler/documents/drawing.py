"""One page into shared memory, by whichever engine draws it. Runs in render processes only."""

from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np

from handler.documents import images, mupdf, pdfium
from handler.documents.buffers import MappedPage, mapped_page
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
        raise DocumentUnreadable(f"the PDF cannot be opened: {_without_path(error, document)}") from None
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
    scale, width, height = _size(opened, job)
    with mapped_page(job.handle, width, height) as target:
        scan = None if job.angle else opened.scan(job.page - 1)
        decoded = scan is not None and draw_scan(scan, target.pixels)
        complaints = () if decoded else opened.draw(job.page - 1, scale, job.angle, target.pixels)
        drawn = Drawn(width, height, scale.dpi, _marked(target), scale.warnings + page_warnings(complaints))
        white = drawn.ink == 0
        doubtful = white and (complaints or opened.repaired or opened.has_pictures(job.page - 1))
        if not (doubtful or tell_of_loss(complaints)):
            return drawn
        second = _other_reading(job, drawn, target)
    if second is not None:
        return second
    if white and not _white_by_right(opened, job.page - 1, complaints):
        raise RenderFailure(Reason.PAGE_DAMAGED, f"both engines draw a white page: {_first(complaints)}")
    return drawn


def _white_by_right(opened: MuPdf, page: int, complaints: tuple[str, ...]) -> bool:
    if tell_of_loss(complaints) or (complaints and opened.has_pictures(page)):
        return False
    return opened.white_by_right(page)


def _other_reading(job: PageJob, first: Drawn, target: MappedPage) -> Drawn | None:
    """The page by the second engine, if it shows clearly more; then it replaces the first in `target`."""
    other = np.empty_like(target.pixels)
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
    np.copyto(target.pixels, other)
    return replace(first, ink=_marked(target), warnings=(*first.warnings, _second_renderer("shows more")))


def _draw_second(job: PageJob) -> Drawn:
    opened = _pdfium(job.document)
    scale, width, height = _size(opened, job)
    with mapped_page(job.handle, width, height) as target:
        opened.draw(job.page - 1, scale, job.angle, target.pixels)
        ink = _marked(target)
    if ink == 0:
        raise RenderFailure(Reason.PAGE_DAMAGED, "one engine cannot draw the page, the other draws it white")
    return Drawn(width, height, scale.dpi, ink, (*scale.warnings, _second_renderer("alone can draw the page")))


def _draw_picture(job: PageJob) -> Drawn:
    picture = images.read_picture(job.document.path, job.document.kind, job.page - 1, job.max_pixels)
    pixels = picture.pixels
    height, width = pixels.shape[:2]
    if job.angle in (90, 270):
        height, width = width, height
    with mapped_page(job.handle, width, height) as target:
        if job.angle:
            cv2.rotate(pixels, _TURNS[job.angle], dst=target.pixels)
        else:
            np.copyto(target.pixels, pixels)
        return Drawn(width, height, None, _marked(target), picture.warnings)


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
