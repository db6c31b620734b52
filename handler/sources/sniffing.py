"""What a file is, by its bytes. Names and content types decide nothing."""

from dataclasses import dataclass

from handler.errors import UnsupportedFormat
from handler.schema import DocumentKind

HEAD_BYTES = 4096
"""How much of a file `sniff` needs to see."""
PDF_HEADER_WITHIN = 1024
"""Readers accept a PDF header that starts within this many bytes."""

_PREFIXES = (
    (b"\x89PNG\r\n\x1a\n", DocumentKind.PNG),
    (b"\xff\xd8\xff", DocumentKind.JPEG),
    (b"II*\x00", DocumentKind.TIFF),
    (b"MM\x00*", DocumentKind.TIFF),
    (b"II+\x00", DocumentKind.TIFF),
    (b"MM\x00+", DocumentKind.TIFF),
    (b"GIF87a", DocumentKind.GIF),
    (b"GIF89a", DocumentKind.GIF),
)
_BMP_HEADER_SIZES = frozenset({12, 16, 40, 52, 56, 64, 108, 124})

_HEIF_BRANDS = frozenset({b"heic", b"heix", b"hevc", b"heim", b"heis", b"mif1", b"msf1", b"avif", b"avis"})
_UNSUPPORTED = (
    (b"\x00\x00\x00\x0cjP  \r\n", "JPEG 2000", "convert it to PNG or PDF"),
    (b"\xff\x4f\xff\x51", "JPEG 2000", "convert it to PNG or PDF"),
    (b"\xff\x0a", "JPEG XL", "convert it to JPEG or PNG"),
    (b"\x00\x00\x00\x0cJXL ", "JPEG XL", "convert it to JPEG or PNG"),
    (b"8BPS", "a Photoshop file", "export it as PNG or PDF"),
    (b"%!PS", "PostScript", "convert it to PDF"),
    (b"\xc5\xd0\xd3\xc6", "EPS", "convert it to PDF"),
    (b"AT&TFORM", "DjVu", "convert it to PDF"),
    (b"{\\rtf", "RTF", "print it to PDF"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file", "print it to PDF"),
    (b"Rar!\x1a\x07", "a RAR archive", "send the document itself, or ZIP it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "send the document itself, or ZIP it"),
    (b"\xfd7zXZ\x00", "xz-compressed", "send the document itself, or gzip it"),
    (b"BZh", "bzip2-compressed", "send the document itself, or gzip it"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed", "send the document itself, or gzip it"),
)
_MARKUP = (b"<!doctype html", b"<html", b"<?xml", b"<svg")
_SPACES = str.maketrans("\t\r\n\f", "    ")
ACCEPTED = "PDF, PNG, JPEG, TIFF, WebP, GIF, BMP, or a ZIP or gzip file holding one of them"


@dataclass(frozen=True, slots=True)
class Sniffed:
    """A file's kind, and how many bytes stand before its header."""

    kind: DocumentKind
    junk: int = 0


def is_zip(head: bytes) -> bool:
    """Whether the file starts as a ZIP archive does."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def is_gzip(head: bytes) -> bool:
    """Whether the file starts as gzip does."""
    return head.startswith(b"\x1f\x8b")


def sniff(head: bytes) -> Sniffed:
    """The kind of a document by its first `HEAD_BYTES`. Raises `UnsupportedFormat` saying what the bytes look like."""
    for prefix, kind in _PREFIXES:
        if head.startswith(prefix):
            return Sniffed(kind)
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return Sniffed(DocumentKind.WEBP)
    if head.startswith(b"BM") and int.from_bytes(head[14:18], "little") in _BMP_HEADER_SIZES:
        return Sniffed(DocumentKind.BMP)
    offset = head.find(b"%PDF-", 0, PDF_HEADER_WITHIN + 4)
    if offset >= 0 and not is_zip(head) and not is_gzip(head):
        return Sniffed(DocumentKind.PDF, offset)
    raise _unsupported(head)


def _unsupported(head: bytes) -> UnsupportedFormat:
    what, advice = _looks_like(head)
    return UnsupportedFormat(f"the document is {what}; {advice} (accepted: {ACCEPTED})", looks_like=what)


def _looks_like(head: bytes) -> tuple[str, str]:
    for prefix, what, advice in _UNSUPPORTED:
        if head.startswith(prefix):
            return what, advice
    if head[4:8] == b"ftyp":
        heif = head[8:12] in _HEIF_BRANDS
        return ("a HEIC or AVIF photo", "convert it to JPEG or PNG") if heif else ("a video", "send a document")
    if head[257:262] == b"ustar":
        return "a tar archive", "send the document itself, or ZIP it"
    if head[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_MARKUP):
        return "a web page or XML", "print it to PDF; an address may have answered with an error page"
    if head.decode("latin-1").translate(_SPACES).isprintable():
        return "plain text", "it needs no recognition"
    return "of an unknown kind", "send a document"
