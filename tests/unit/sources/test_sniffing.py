import io

import pytest
from PIL import Image

from handler.errors import UnsupportedFormat
from handler.schema import DocumentKind
from handler.sources.sniffing import sniff


@pytest.mark.parametrize("kind", [kind for kind in DocumentKind if kind is not DocumentKind.PDF])
def test_every_image_kind_is_known_by_its_bytes(kind: DocumentKind) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (9, 9)).save(buffer, kind.value)
    assert sniff(buffer.getvalue()).kind is kind


@pytest.mark.parametrize("junk", [0, 1, 500, 1023])
def test_a_pdf_header_counts_within_the_first_1024_bytes(junk: int) -> None:
    sniffed = sniff(b"\n" * junk + b"%PDF-1.7\n%\xe2\xe3")
    assert (sniffed.kind, sniffed.junk) == (DocumentKind.PDF, junk)


def test_a_pdf_header_further_in_does_not_count() -> None:
    with pytest.raises(UnsupportedFormat):
        sniff(b"\n" * 1024 + b"%PDF-1.7\n")


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00", "HEIC"),
        (b"\x00\x00\x00\x18ftypavif\x00\x00\x00\x00", "HEIC or AVIF"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00", "video"),
        (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "JPEG 2000"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"\xef\xbb\xbf  <svg xmlns=''>", "web page or XML"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Office"),
        (b"{\\rtf1 hello}", "RTF"),
        (b"%!PS-Adobe-3.0", "PostScript"),
        (b"just some words", "plain text"),
        (b"\x00" * 257 + b"ustar\x0000", "tar"),
        (b"Rar!\x1a\x07\x00", "RAR"),
        (b"\x7fELF\x02\x01", "unknown"),
        (b"BM this is prose, not a bitmap", "plain text"),
    ],
)
def test_other_kinds_are_refused_by_name(head: bytes, says: str) -> None:
    with pytest.raises(UnsupportedFormat, match=says):
        sniff(head)
