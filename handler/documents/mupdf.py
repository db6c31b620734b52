"""The first PDF engine: MuPDF, drawing straight into the page's shared memory.

Imported in render processes only. MuPDF repairs damaged files into white pages and says so only in its warnings, which
are global: they are read and cleared around every step, so that they belong to the page being drawn.
"""

import ctypes
import re
import resource
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from handler.documents.buffers import COLOUR
from handler.documents.complaints import lines_of, tell_of_loss
from handler.documents.lean import mupdf, pymupdf
from handler.documents.page_tree import correct_counts
from handler.documents.scale import Scale
from handler.documents.scans import Scan, scan_of
from handler.errors import PasswordRequired, PasswordWrong
from handler.layout.detector import Pixels

KEEP_BYTES = 64 * 1024 * 1024
"""What a render process may grow by before MuPDF's store of fonts and pictures is emptied after a page.

MuPDF would keep 256 MB, and PyMuPDF 2.0 does not tell how full the store is. What a process inherits from the fork
server does not count: with it the store would be emptied after every page, which doubles the cost of drawing one."""

FAILURES = (mupdf.FzErrorBase, RuntimeError, IndexError)
"""What PyMuPDF raises for documents it cannot read, as seen with damaged files."""

_PACKINGS = re.compile("/(?!ASCII85Decode|ASCIIHexDecode)")
_STATM = Path("/proc/self/statm")
_LIBC = ctypes.CDLL(None)

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)


@dataclass(frozen=True, slots=True)
class Contents:
    """A page's drawing instructions, read once."""

    instructions: mupdf.FzDisplayList
    grey: bool
    """Neither text nor lines nor the colour space of any picture have colour."""
    complaints: tuple[str, ...]
    """MuPDF's warnings. Some it does not repeat when the page is drawn."""


class MuPdf:
    """One PDF, open in MuPDF."""

    def __init__(self, path: Path, password: str | None) -> None:
        _inherited_bytes()
        take_warnings()
        self._document = pymupdf.open(path, filetype="pdf")
        if self._document.needs_pass:
            if password is None:
                raise PasswordRequired
            if not self._document.authenticate(password):
                raise PasswordWrong
        self.repaired: bool = bool(self._document.is_repaired)
        correct_counts(mupdf.pdf_document_from_fz_document(self._document.this), repaired=self.repaired)
        self.page_count: int = self._document.page_count
        self.warnings = take_warnings()

    def size(self, page: int) -> tuple[float, float]:
        """Width and height in points of page `page` (from 0), rotation applied."""
        bound = mupdf.fz_bound_page(self._load(page))
        return bound.x1 - bound.x0, bound.y1 - bound.y0

    def content_streams(self, page: int, limit: int) -> bytes:
        """The beginning of what draws page `page` (from 0), unpacked: at most `limit` bytes of each stream.

        Raises `FAILURES`, and `ValueError` for a stream that is packed more than once, which may be a bomb.
        """
        document = mupdf.pdf_document_from_fz_document(self._document.this)
        unpacked = bytearray(limit)
        beginnings = []
        for number in self._document[page].get_contents():
            packing = self._document.xref_get_key(number, "Filter")[1]
            if len(_PACKINGS.findall(packing)) > 1:
                raise ValueError(packing)
            stream = mupdf.pdf_open_stream_number(document, number)
            length = mupdf.fz_read(stream, mupdf.python_mutable_buffer_data(memoryview(unpacked)), limit)
            beginnings.append(bytes(unpacked[:length]))
        return b"\n".join(beginnings)

    def scan(self, page: int) -> Scan | None:
        """The JPEG that page `page` (from 0) consists of; None for a page that has to be drawn."""
        try:
            return scan_of(self._document, self._document[page])
        except (*FAILURES, ValueError):
            return None

    def read(self, page: int) -> Contents:
        """Read page `page` (from 0), annotations and form fields too. What it needs is decoded when it is drawn.

        What MuPDF says while looking the page up concerns the page tree, not this page, and is left out.
        """
        loaded = self._load(page)
        take_warnings()
        instructions = mupdf.fz_new_display_list(mupdf.fz_bound_page(loaded))
        device = mupdf.fz_new_list_device(instructions)
        mupdf.fz_run_page(loaded, device, mupdf.FzMatrix(), mupdf.FzCookie())
        mupdf.fz_close_device(device)
        coloured = _has_colour(instructions)
        complaints = take_warnings()
        return Contents(instructions, not (coloured or self._has_drawn_letters(page)), complaints)

    def _has_drawn_letters(self, page: int) -> bool:
        """Letters that are small drawings may have colours, which MuPDF does not look for."""
        return any(font[2] == "Type3" for font in self._document.get_page_fonts(page, full=True))

    def draw(self, contents: Contents, scale: Scale, angle: int, target: Pixels) -> tuple[str, ...]:
        """Draw into `target`, which may have one channel for a page without colour; returns MuPDF's warnings."""
        take_warnings()
        bound = mupdf.fz_bound_display_list(contents.instructions)
        place = mupdf.fz_concat(mupdf.fz_scale(scale.factor, scale.factor), mupdf.fz_rotate(angle))
        drawn = mupdf.fz_transform_rect(bound, place)
        place = mupdf.fz_concat(place, mupdf.fz_translate(-drawn.x0, -drawn.y0))
        height, width = target.shape[:2]
        pixmap = mupdf.fz_new_pixmap_with_bbox_and_data(
            mupdf.fz_device_rgb() if target.shape[2] == COLOUR else mupdf.fz_device_gray(),
            mupdf.FzIrect(0, 0, width, height),
            mupdf.FzSeparations(),
            0,
            mupdf.python_mutable_buffer_data(target.data),
        )
        mupdf.fz_clear_pixmap_with_value(pixmap, 255)
        device = mupdf.fz_new_draw_device(place, pixmap)
        mupdf.fz_run_display_list(contents.instructions, device, mupdf.FzMatrix(), bound, mupdf.FzCookie())
        mupdf.fz_close_device(device)
        complaints = take_warnings()
        if tell_of_loss(complaints):
            # What MuPDF keeps of a damaged picture it draws again without a word, on the next page as well.
            mupdf.fz_empty_store()
        shed()
        return complaints

    def white_by_right(self, page: int) -> bool:
        """Whether a page drawn white has lost nothing: it is there, and its contents and pictures can be read."""
        take_warnings()
        try:
            loaded = self._document[page]
            if not all(self._document.xref_is_stream(xref) for xref in loaded.get_contents()):
                return False
            for picture in loaded.get_image_info(xrefs=True):
                if picture["xref"]:
                    pymupdf.Pixmap(self._document, picture["xref"])
        except FAILURES:
            return False
        return not tell_of_loss(take_warnings())

    def has_pictures(self, page: int) -> bool:
        """Whether the page shows pictures; true as well when that cannot be told."""
        try:
            return bool(self._document[page].get_image_info())
        except FAILURES:
            return True

    def _load(self, page: int) -> mupdf.FzPage:
        return mupdf.fz_load_page(self._document.this, page)


def _has_colour(instructions: mupdf.FzDisplayList) -> bool:
    """A tenth of the cost of drawing, and grey draws in half the time."""
    seen = mupdf.ll_fz_new_test_device_outparams()
    device = mupdf.FzDevice(mupdf.ll_fz_new_test_device_outparams_fn(0.0, 0, None, seen))
    try:
        everywhere = mupdf.fz_bound_display_list(instructions)
        mupdf.fz_run_display_list(instructions, device, mupdf.FzMatrix(), everywhere, mupdf.FzCookie())
        mupdf.fz_close_device(device)
    except FAILURES:
        return True
    return bool(seen.is_color)


def take_warnings() -> tuple[str, ...]:
    """MuPDF's warnings since the last call; clears them."""
    return lines_of(pymupdf.TOOLS.mupdf_warnings(reset=True))


def shed() -> None:
    """Give memory back when this process has grown by more than `KEEP_BYTES` since it opened its first PDF."""
    if _private_bytes() - _inherited_bytes() > KEEP_BYTES:
        mupdf.fz_empty_store()
        _LIBC.malloc_trim(0)


@cache
def _inherited_bytes() -> int:
    """Private memory at the first call: before anything was opened."""
    return _private_bytes()


def _private_bytes() -> int:
    resident, shared = (int(number) for number in _STATM.read_text().split()[1:3])
    return (resident - shared) * resource.getpagesize()
