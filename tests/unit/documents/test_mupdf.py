"""Pictures whose data are cut short: MuPDF pads them, and says so only when it decodes them."""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from handler.documents.complaints import tell_of_loss
from handler.documents.mupdf import MuPdf
from handler.documents.scale import page_scale
from tests.support.raw_pdf import raw_pdf, stream

WIDTH, HEIGHT = 600, 800
GREY = b"/BitsPerComponent 8/ColorSpace/DeviceGray"


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
    return [tell_of_loss(document.draw(page, scale, 0, target)) for page in (0, 1)]


def plain(data: bytes) -> bytes:
    return data


@pytest.mark.parametrize(("packed", "entries"), [(plain, GREY), (zlib.compress, GREY + b"/Filter/FlateDecode")])
def test_a_picture_cut_short_is_told_on_every_page_that_shows_it(
    tmp_path: Path, packed: Callable[[bytes], bytes], entries: bytes
) -> None:
    data = bytes(range(200)) * (WIDTH * HEIGHT // 200)
    assert complaints(tmp_path, two_pages_of_one_picture(packed(data), entries)) == [False, False]
    assert complaints(tmp_path, two_pages_of_one_picture(packed(data[: len(data) // 2]), entries)) == [True, True]
