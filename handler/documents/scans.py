"""Pages that are one JPEG picture from edge to edge and nothing else, as scanners make them.

libjpeg-turbo decodes and OpenCV scales such a page in a quarter of the time that MuPDF takes to draw it (measured with
colour scans of 200 and 300 dpi). Anything unusual leaves the page to MuPDF: another colour space than plain RGB, sRGB
or plain grey, masks, rotation, annotations, text, a margin, or data that do not decode without a warning.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import simplejpeg

from handler.layout.detector import Pixels

MOST_CONTENT_BYTES = 512
MOST_PIXELS = 80_000_000
"""A4 at 900 dpi."""
MARGIN_PT = 0.75
CODINGS = {"RGB": "/DeviceRGB", "YCbCr": "/DeviceRGB", "Gray": "/DeviceGray"}
"""What the JPEG may be coded in, and what the PDF must then call it; for colour, an sRGB profile means the same."""
SRGB = (b"sRGB", "sRGB".encode("utf-16-be"))
"""In the name of the profile, by its version."""
PLAIN = {"Filter": "/DCTDecode", "BitsPerComponent": "8"}
REFUSED_KEYS = ("SMask", "Mask", "Decode", "ImageMask", "OC", "Matte", "DecodeParms")

_NUMBER = rb"([-+]?\d*\.?\d+)"
_ONE_PICTURE = re.compile(rb"\s*q\s+" + rb"\s+".join([_NUMBER] * 6) + rb"\s+cm\s*/([^\s/<>()\[\]]+)\s+Do\s*Q\s*")


@dataclass(frozen=True, slots=True)
class Scan:
    """A JPEG file, and whether it is coded in colour."""

    jpeg: bytes = field(repr=False)
    grey: bool


def scan_of(document: Any, page: Any) -> Scan | None:
    """The JPEG that a page of an open PyMuPDF document consists of; None for every other page."""
    if page.rotation or page.cropbox != page.mediabox or document.xref_get_key(page.xref, "Annots")[0] != "null":
        return None
    contents = page.get_contents()
    if len(contents) != 1 or not document.xref_is_stream(contents[0]):
        return None
    if len(document.xref_stream_raw(contents[0])) > MOST_CONTENT_BYTES:
        return None
    drawn = _ONE_PICTURE.fullmatch(document.xref_stream(contents[0]))
    if drawn is None or not _fills(page, [float(number) for number in drawn.groups()[:6]]):
        return None
    pictures = {picture[7]: picture[0] for picture in page.get_images()}
    xref = pictures.get(drawn.group(7).decode("latin-1"))
    return _plain_jpeg(document, xref) if xref else None


def draw_scan(scan: Scan, target: Pixels) -> bool:
    """Decode and scale a scan into `target`; false, with `target` undefined, when it is damaged.

    The decoder itself halves pictures of twice the size and more; what is left between 1 and 2 is interpolated.
    """
    height, width = target.shape[:2]
    colours = "GRAY" if scan.grey else "RGB"
    try:
        pixels = simplejpeg.decode_jpeg(scan.jpeg, colorspace=colours, min_height=height, min_width=width, min_factor=2)
    except ValueError:
        return False
    shrinks = pixels.shape[0] >= height and pixels.shape[1] >= width
    cv2.resize(pixels, (width, height), dst=target, interpolation=cv2.INTER_LINEAR if shrinks else cv2.INTER_CUBIC)
    return True


def _fills(page: Any, matrix: list[float]) -> bool:
    a, b, c, d, e, f = matrix
    box = page.mediabox
    wanted = (box.width, 0.0, 0.0, box.height, box.x0, box.y0)
    return bool(np.allclose((a, b, c, d, e, f), wanted, rtol=0.0, atol=MARGIN_PT))


def _plain_jpeg(document: Any, xref: int) -> Scan | None:
    if any(document.xref_get_key(xref, key)[0] != "null" for key in REFUSED_KEYS):
        return None
    if any(document.xref_get_key(xref, key)[1] != value for key, value in PLAIN.items()):
        return None
    jpeg: bytes = document.xref_stream_raw(xref)
    try:
        height, width, coded, _ = simplejpeg.decode_jpeg_header(jpeg)
    except ValueError:
        return None
    fits = coded in CODINGS and _called(document, xref) == CODINGS[coded] and width * height <= MOST_PIXELS
    return Scan(jpeg, coded == "Gray") if fits else None


def _called(document: Any, xref: int) -> str:
    """The picture's colour space, an sRGB profile as /DeviceRGB."""
    kind, value = document.xref_get_key(xref, "ColorSpace")
    if kind == "xref":
        value = document.xref_object(int(value.split()[0]), compressed=True)
    profile = re.fullmatch(r"\[\s*/ICCBased\s+(\d+) 0 R\s*\]", value)
    if profile is None:
        return str(value)
    data = document.xref_stream(int(profile[1])) or b""
    return "/DeviceRGB" if any(name in data for name in SRGB) else "another profile"
