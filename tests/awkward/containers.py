"""Containers, and files that are not what their name says."""

import gzip
import io
import zipfile
from collections.abc import Iterator

from handler.schema import ErrorCode
from tests.awkward.case import Case
from tests.awkward.pdfs import drawn, lines, lines_picture, three
from tests.awkward.pictures import frames, written


def packed(*members: tuple[str, bytes]) -> bytes:
    """A ZIP file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def cases() -> Iterator[Case]:
    """All of them."""
    ok = ("ok",)
    refused, unsupported = ErrorCode.ARCHIVE_REFUSED, ErrorCode.UNSUPPORTED_FORMAT
    yield Case("ZIP with a PDF", lambda: packed(("a.pdf", three())), ("ok", "ok", "ok"))
    yield Case(
        "ZIP with a TIFF and a Mac's clutter",
        lambda: packed(("__MACOSX/a", b"x"), ("a.tif", frames("TIFF", 2))),
        ("ok", "ok"),
    )
    yield Case("gzip with a PNG", lambda: gzip.compress(written(lines_picture(), "PNG")), ok)
    yield Case(
        "ZIP with two documents", lambda: packed(("a.pdf", three()), ("b.pdf", three())), ErrorCode.ARCHIVE_REFUSED
    )
    yield Case("ZIP with nothing", lambda: packed(), refused)
    yield Case("ZIP in a ZIP", lambda: packed(("a.zip", packed(("a.pdf", three())))), refused)
    yield Case("ZIP cut in two", lambda: packed(("a.pdf", three()))[:900], refused)
    yield Case(
        "Word file", lambda: packed(("[Content_Types].xml", b"<x/>"), ("word/a.xml", b"")), ErrorCode.UNSUPPORTED_FORMAT
    )
    yield Case("PNG called a PDF", lambda: written(lines_picture(), "PNG"), ok, {"filename": "scan.pdf"})
    yield Case("PDF called a PNG", lambda: drawn(lines), ok, {"filename": "scan.png"})
    yield Case("HEIC photo", lambda: b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", unsupported)
    yield Case("web page", lambda: b"<!DOCTYPE html><html><body>404</body></html>", unsupported)
    yield Case("plain text", lambda: b"Dear Sir or Madam", unsupported)
