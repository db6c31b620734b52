"""The first PDF engine, with documents made on the spot."""

import multiprocessing
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from reportlab.pdfgen.canvas import Canvas

from handler.documents import mupdf
from handler.documents.buffers import COLOUR, GREY
from handler.documents.complaints import tell_of_loss
from handler.documents.lean import pymupdf
from handler.documents.mupdf import KEEP_BYTES, MuPdf
from handler.documents.scale import page_scale
from handler.layout.detector import Pixels
from tests.support.raw_pdf import raw_pdf, stream
from tests.unit.documents.conftest import lines, pdf

WIDTH, HEIGHT = 600, 800
GREY_PICTURE = b"/BitsPerComponent 8/ColorSpace/DeviceGray"


def two_pages_of_one_picture(data: bytes, entries: bytes) -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>"
    return raw_pdf(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R 6 0 R]/Count 2>>",
            3: page,
            4: stream(b"q 600 0 0 800 0 0 cm /I Do Q"),
            5: stream(data, b"/Type/XObject/Subtype/Image/Width %d/Height %d" % (WIDTH, HEIGHT) + entries),
            6: page,
        }
    )


def complaints(tmp_path: Path, content: bytes) -> list[bool]:
    """Whether each page tells of a loss, all drawn by one process that keeps what it has decoded."""
    path = tmp_path / "a.pdf"
    path.write_bytes(content)
    document = MuPdf(path, None)
    scale = page_scale(*document.size(0), 72, 24_000_000)
    target = np.empty((scale.height, scale.width, 3), np.uint8)
    return [tell_of_loss(document.draw(document.read(page), scale, 0, target)) for page in (0, 1)]


def plain(data: bytes) -> bytes:
    return data


@pytest.mark.parametrize(
    ("packed", "entries"), [(plain, GREY_PICTURE), (zlib.compress, GREY_PICTURE + b"/Filter/FlateDecode")]
)
def test_a_picture_cut_short_is_told_on_every_page_that_shows_it(
    tmp_path: Path, packed: Callable[[bytes], bytes], entries: bytes
) -> None:
    data = bytes(range(200)) * (WIDTH * HEIGHT // 200)
    assert complaints(tmp_path, two_pages_of_one_picture(packed(data), entries)) == [False, False]
    assert complaints(tmp_path, two_pages_of_one_picture(packed(data[: len(data) // 2]), entries)) == [True, True]


SQUARE = pymupdf.Rect(50, 50, 150, 150)
TYPE3 = """<< /Type /Font /Subtype /Type3 /FontBBox [0 0 10 10] /FontMatrix [0.1 0 0 0.1 0 0] /FirstChar 97
/LastChar 97 /Widths [10] /Encoding << /Type /Encoding /Differences [97 /box] >> /CharProcs << /box %d 0 R >>
/Resources << >> >>"""


def opened(tmp_path: Path, data: bytes) -> MuPdf:
    path = tmp_path / "document.pdf"
    path.write_bytes(data)
    return MuPdf(path, None)


def made(draw: Callable[[pymupdf.Page], object]) -> bytes:
    document = pymupdf.open()
    draw(document.new_page(width=200, height=200))
    data: bytes = document.tobytes()
    return data


def picture(colours: pymupdf.Colorspace) -> pymupdf.Pixmap:
    pixmap = pymupdf.Pixmap(colours, pymupdf.IRect(0, 0, 20, 20))
    pixmap.clear_with(100)
    return pixmap


def coloured_letters(page: pymupdf.Page) -> None:
    """A letter that is a red box, as a program may draw it."""
    document = page.parent
    letter, font = document.get_new_xref(), document.get_new_xref()
    document.update_object(letter, "<<>>")
    document.update_stream(letter, b"10 0 d0 1 0 0 rg 0 0 10 10 re f")
    document.update_object(font, TYPE3 % letter)
    document.xref_set_key(page.xref, "Resources", f"<< /Font << /F1 {font} 0 R >> >>")
    contents = document.get_new_xref()
    document.update_object(contents, "<<>>")
    document.update_stream(contents, b"BT /F1 50 Tf 50 100 Td (a) Tj ET")
    page.set_contents(contents)


COLOURED = {
    "text": lambda page: page.insert_text((50, 50), "red", color=(1, 0, 0)),
    "nearly grey": lambda page: page.insert_text((50, 50), "brownish", color=(0.5, 0.5, 0.49)),
    "line": lambda page: page.draw_rect(SQUARE, color=(0, 0, 1)),
    "picture": lambda page: page.insert_image(SQUARE, pixmap=picture(pymupdf.csRGB)),
    "note": lambda page: page.add_highlight_annot(SQUARE),
    "letters": coloured_letters,
}
GREYS = {
    "text": lambda page: page.insert_text((50, 50), "grey", color=(0.4, 0.4, 0.4)),
    "line": lambda page: page.draw_rect(SQUARE, fill=(0.7,)),
    "picture": lambda page: page.insert_image(SQUARE, pixmap=picture(pymupdf.csGRAY)),
    "nothing": lambda page: None,
}


def drawn(document: MuPdf, channels: int) -> Pixels:
    scale = page_scale(*document.size(0), 100, 10**8)
    target = np.zeros((scale.height, scale.width, channels), np.uint8)
    assert document.draw(document.read(0), scale, 0, target) == ()
    return target


@pytest.mark.parametrize("draw", COLOURED.values(), ids=COLOURED.keys())
def test_a_page_with_colour_is_known(tmp_path: Path, draw: Callable[[pymupdf.Page], object]) -> None:
    document = opened(tmp_path, made(draw))
    contents = document.read(0)
    assert not contents.grey
    assert contents.complaints == ()
    pixels = drawn(document, COLOUR).astype(int)
    assert pixels.min() < 255, "there is something to see"


@pytest.mark.parametrize("draw", GREYS.values(), ids=GREYS.keys())
def test_a_page_without_colour_is_the_same_in_one_plane(tmp_path: Path, draw: Callable[[pymupdf.Page], object]) -> None:
    document = opened(tmp_path, made(draw))
    assert document.read(0).grey
    colour, grey = drawn(document, COLOUR), drawn(document, GREY)
    assert np.abs(colour.astype(int) - grey).max() <= 1


def test_print_is_grey(tmp_path: Path) -> None:
    assert opened(tmp_path, pdf(lines)).read(0).grey


def test_what_cannot_be_run_through_is_drawn_in_colour_and_complains(tmp_path: Path) -> None:
    def broken(canvas: Canvas) -> None:
        canvas._code.append("/Missing Do")
        lines(canvas)

    document = opened(tmp_path, pdf(broken))
    assert document.read(0).complaints != ()


def emptied_after(path: Path) -> list[int]:
    """How often the store had been emptied after a page, and after one more when the process had grown."""
    emptied: list[bool] = []
    mupdf.mupdf.fz_empty_store = lambda: emptied.append(True)
    inherited = np.ones(2 * KEEP_BYTES, np.uint8)
    document = MuPdf(path, None)
    scale = page_scale(*document.size(0), 72, 10**9)
    target = np.empty((scale.height, scale.width, COLOUR), np.uint8)
    document.draw(document.read(0), scale, 0, target)
    counts = [len(emptied)]
    grown = np.ones(KEEP_BYTES, np.uint8)
    document.draw(document.read(0), scale, 0, target)
    counts.append(len(emptied))
    assert inherited.any()
    assert grown.any()
    return counts


def test_only_what_a_process_has_grown_by_empties_the_store(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(lines))
    # In a process of its own: what other tests leave in this one may go at any moment.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as fresh:
        assert fresh.submit(emptied_after, path).result() == [0, 1]
