"""The second PDF engine: PDFium, for what MuPDF cannot read. Imported in render processes only."""

import ctypes
from pathlib import Path

import pypdfium2
import pypdfium2.raw as raw

from handler.documents.scale import Scale
from handler.errors import PasswordRequired, PasswordWrong
from handler.layout.detector import Pixels

FAILURES = (pypdfium2.PdfiumError,)
"""What pypdfium2 raises for documents it cannot read."""


class Pdfium:
    """One PDF, open in PDFium."""

    def __init__(self, path: Path, password: str | None) -> None:
        try:
            self._document = pypdfium2.PdfDocument(path, password=password)
        except pypdfium2.PdfiumError as error:
            if getattr(error, "err_code", None) != raw.FPDF_ERR_PASSWORD:
                raise
            raise (PasswordRequired if password is None else PasswordWrong)() from None
        self._document.init_forms()
        self.page_count: int = len(self._document)

    def size(self, page: int) -> tuple[float, float]:
        """Width and height in points of page `page` (from 0), rotation applied."""
        width, height = self._document[page].get_size()
        return float(width), float(height)

    def draw(self, page: int, scale: Scale, angle: int, target: Pixels) -> None:
        """Draw page `page` (from 0), annotations and form fields too, into `target`."""
        height, width = target.shape[:2]
        memory = (ctypes.c_ubyte * target.nbytes).from_buffer(target.data)
        bitmap = pypdfium2.PdfBitmap.new_native(width, height, raw.FPDFBitmap_BGR, rev_byteorder=True, buffer=memory)
        bitmap.fill_rect((255, 255, 255, 255), 0, 0, width, height)
        loaded = self._document[page]
        flags = raw.FPDF_ANNOT | raw.FPDF_REVERSE_BYTE_ORDER
        placed = (bitmap, loaded, 0, 0, width, height, angle // 90, flags)
        raw.FPDF_RenderPageBitmap(*placed)
        if self._document.formenv:
            raw.FPDF_FFLDraw(self._document.formenv, *placed)
        loaded.close()
        bitmap.close()
