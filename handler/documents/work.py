"""What goes to a render process for one page, and what comes back. Known to both sides."""

from dataclasses import dataclass
from enum import StrEnum

from handler.documents.page import StagedDocument
from handler.schema import PageWarning


class PdfEngine(StrEnum):
    """Who opens and draws a PDF."""

    MUPDF = "mupdf"
    PDFIUM = "pdfium"


@dataclass(frozen=True, slots=True)
class PageJob:
    """One page to draw: of which document, how, and where to."""

    document: StagedDocument
    page: int
    """From 1."""
    dpi: int
    angle: int
    max_pixels: int
    handle: str
    engine: PdfEngine = PdfEngine.MUPDF


@dataclass(frozen=True, slots=True)
class Drawn:
    """What lies in the shared memory now."""

    width: int
    height: int
    channels: int
    dpi: float | None
    ink: float
    warnings: tuple[PageWarning, ...] = ()
