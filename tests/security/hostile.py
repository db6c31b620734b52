"""Inputs that mean harm, and the code each must be answered with.

Where a PDF is hostile but opens, the answer is the page's: `failed:<reason>`, `blank` or `ok` in one word per page.
"""

import base64
import gzip
import io
import math
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handler.schema import ErrorCode as Code
from tests.awkward.pdfs import TEXT, drawn, page, picture_page, rc4_40, three
from tests.awkward.pictures import bomb, lines_picture, written
from tests.support.raw_pdf import raw_pdf, stream

MEGABYTE = 1024 * 1024
SECRET_FILE = "the worker's own file"


@dataclass(frozen=True)
class Attack:
    """One job."""

    name: str
    job: Any = field(repr=False)
    expected: Code | tuple[str, ...]


def attacks(volume: Path) -> Iterator[Attack]:
    """All of them. Puts what some of them need onto `volume`."""
    for family in (_shapes, _values, _encodings, _addresses, _buckets, _formats, _archives, _pictures, _pdfs):
        yield from family()
    yield from _paths(volume)


def inline(content: bytes, **options: Any) -> dict[str, Any]:
    """A job with the document inside."""
    return {"file_base64": base64.b64encode(content).decode(), **options}


def _shapes() -> Iterator[Attack]:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    good = inline(written(lines_picture(), "PNG"))
    for name, job in (("nothing", None), ("text", "file"), ("a number", 5), ("a list", [good]), ("true", True)):
        yield Attack(f"input is {name}", job, Code.INVALID_INPUT)
    yield Attack("input is empty", {}, Code.NO_SOURCE)
    yield Attack("two sources", {**good, "volume_path": "a.pdf"}, Code.SEVERAL_SOURCES)
    yield Attack("two sources, one empty", {"file_base64": "", "file_url": "http://a"}, Code.SEVERAL_SOURCES)
    for key in ("__class__", "__init__", "constructor", "file", "k" * MEGABYTE, "\ud800", "file_base64\0", "Settings"):
        yield Attack(f"unknown key {key[:12]!a}", {**good, key: 1}, Code.UNKNOWN_KEY)
    for key in ("file_base64", "file_url", "volume_path", "s3_uri", "password", "dpi", "pages", "formats"):
        yield Attack(f"5000 lists in {key}", {**good, key: deep}, Code.INVALID_INPUT)
    yield Attack("an object as file_url", {"file_url": {"$ref": "#"}}, Code.INVALID_INPUT)
    yield Attack("warmup with a document", {**good, "warmup": True}, Code.INVALID_INPUT)


def _values() -> Iterator[Attack]:
    good = inline(three())
    bad: dict[str, tuple[Any, ...]] = {
        "dpi": (0, -1, 601, 10**400, "200; rm -rf", math.nan, math.inf, True, [200], 199.5),
        "max_tokens": (0, -5, 10**9, "lots"),
        "formats": ("markdown", ["exe"], [None], {"markdown": 1}),
        "transport": ("ftp", "../s3", 1),
        "furniture": ("burn", 0),
        "filename": ("n" * 1025, 5),
        "password": ("p" * 1025, {"a": 1}),
        "idempotency_key": ("k" * 257,),
        "pages": ("p" * 4097, 5, "one", "1-2-3", "3-1", "0", "1,,2", "1;2", "1e3", "\u0663"),
    }
    for key, values in bad.items():
        for value in values:
            yield Attack(f"{key} is {str(value)[:24]!a}", {**good, key: value}, Code.INVALID_INPUT)
    yield Attack("reserved format", {**good, "formats": ["searchable_pdf"]}, Code.UNSUPPORTED_FORMAT)
    yield Attack("pages far away", {**good, "pages": "999999-"}, Code.PAGES_OUT_OF_RANGE)
    yield Attack("pages beyond all numbers", {**good, "pages": "9" * 4000 + "-"}, Code.INVALID_INPUT)


def _encodings() -> Iterator[Attack]:
    for name, text in (
        ("not base64", "%%%%"),
        ("one character", "A"),
        ("padding inside", "QQ==QQ=="),
        ("line breaks", "QUJD\nQUJD"),
        ("url-safe alphabet", "__--"),
        ("a data address", "data:application/pdf;base64,QUJD"),
        ("letters of another script", "\u0410\u0411\u0412\u0413"),
        ("a lone surrogate", "\ud800AAA"),
        ("only padding", "===="),
    ):
        yield Attack(f"base64: {name}", {"file_base64": text}, Code.INVALID_BASE64)
    yield Attack("base64: nothing", {"file_base64": ""}, Code.EMPTY_FILE)
    yield Attack("base64: over the limit", {"file_base64": "A" * (12 * MEGABYTE)}, Code.DOCUMENT_TOO_LARGE)


def _addresses() -> Iterator[Attack]:
    for address in (
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        "ftp://example.com/a.pdf",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "dict://127.0.0.1:11211/stat",
        "javascript:alert(1)",
        "data:application/pdf;base64,AAAA",
        "/etc/passwd",
        "//169.254.169.254/",
        "",
        "http://",
        "http://[::1",
        "http://user:secret@example.com/",
        "http://example.com\\@127.0.0.1/",
        "http://127.0.0.1\r\nX: y/",
        "http://example.com:99999/",
        "http://" + "a" * 9000,
        "http://localhost/",
        "http://127.0.0.1:5002/v1/models",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://017700000001/",
        "http://0/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[::1]:5002/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:a9fe:a9fe]/latest/meta-data/",
        "http://[0:0:0:0:0:ffff:10.0.0.1]/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[2002:a9fe:a9fe::]/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "http://169.254.169.254/latest/meta-data/iam/",
        "http://169.254.170.2/v2/credentials",
        "http://168.63.129.16/",
        "http://100.100.100.200/",
        "http://100.64.0.1/",
        "http://10.0.0.1/",
        "http://172.31.255.255/",
        "http://192.168.0.1/",
        "http://198.18.0.1/",
        "http://224.0.0.251/",
        "http://255.255.255.255/",
    ):
        yield Attack(f"url: {address[:40]!a}", {"file_url": address}, Code.URL_REFUSED)


def _buckets() -> Iterator[Attack]:
    for uri, code in (
        ("s3://someone-elses/a.pdf", Code.URL_REFUSED),
        ("https://documents/a.pdf", Code.URL_REFUSED),
        ("s3://documents", Code.URL_REFUSED),
        ("s3://", Code.URL_REFUSED),
        ("s3://documents/" + "k" * 2000, Code.URL_REFUSED),
        ("s3://documents/glmocr/results/x/result.json", Code.PATH_REFUSED),
        ("s3://documents/glmocr/checkpoints/x/1.json.gz", Code.PATH_REFUSED),
        ("s3://documents/a/../glmocr/results/x", Code.PATH_REFUSED),
        ("s3://documents//glmocr/x", Code.PATH_REFUSED),
        ("s3://documents/a\0b", Code.PATH_REFUSED),
        ("s3://documents/absent.pdf", Code.SOURCE_NOT_FOUND),
    ):
        yield Attack(f"bucket: {uri[:40]!a}", {"s3_uri": uri}, code)


def _paths(volume: Path) -> Iterator[Attack]:
    outside = volume.parent / "outside"
    outside.mkdir()
    (outside / "secret.pdf").write_text(SECRET_FILE)
    (volume / "glmocr" / "results").mkdir(parents=True, exist_ok=True)
    (volume / "glmocr" / "results" / "other.pdf").write_bytes(three())
    (volume / "link.pdf").symlink_to(outside / "secret.pdf")
    (volume / "folder").symlink_to(outside)
    (volume / "inside").symlink_to(volume / "glmocr")
    (volume / "null").symlink_to("/dev/null")
    for given in (
        "/etc/passwd",
        "../outside/secret.pdf",
        "a/../../outside/secret.pdf",
        "..",
        ".",
        "/",
        "",
        "link.pdf",
        "folder/secret.pdf",
        "inside/results/other.pdf",
        "null",
        "glmocr/results/other.pdf",
        "./glmocr//results/other.pdf",
        "GLMOCR/results/other.pdf",
        "glmocr/models/weights",
        "huggingface-cache/hub/config.json",
        "a\0.pdf",
        "\ud800.pdf",
        "file:///etc/passwd",
    ):
        code = Code.SOURCE_NOT_FOUND if given == "file:///etc/passwd" else Code.PATH_REFUSED
        yield Attack(f"path: {given[:40]!a}", {"volume_path": given}, code)
    yield Attack("path: very long", {"volume_path": "d/" * 5000 + "a"}, Code.SOURCE_NOT_FOUND)


def _formats() -> Iterator[Attack]:
    for name, content in (
        ("HTML", b"<html><script>alert(1)</script>"),
        ("SVG with a reference", b"<svg><image href='file:///etc/passwd'/></svg>"),
        ("XML with entities", b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>]><a>&b;</a>"),
        ("PostScript", b"%!PS-Adobe-3.0\n(/etc/passwd) (r) file"),
        ("EPS in a DOS wrapper", b"\xc5\xd0\xd3\xc6" + bytes(28)),
        ("a program", b"\x7fELF\x02\x01\x01" + bytes(60)),
        ("a shell script", b"#!/bin/sh\nreboot\n"),
        ("a pickle", b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00cposix\nsystem\n."),
        ("HEIC", b"\0\0\0\x18ftypheic" + bytes(16)),
        ("a film", b"\0\0\0\x18ftypmp42" + bytes(16)),
        ("Photoshop", b"8BPS\0\x01" + bytes(26)),
        ("nothing but zeros", bytes(4096)),
    ):
        yield Attack(f"kind: {name}", inline(content, filename="scan.pdf"), Code.UNSUPPORTED_FORMAT)


def _zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def _archives() -> Iterator[Attack]:
    pdf = three()
    large = bytes(9 * MEGABYTE)
    for name, content, code in (
        ("two documents", _zipped(("a.pdf", pdf), ("b.pdf", pdf)), Code.ARCHIVE_REFUSED),
        ("500 documents", _zipped(*((f"{n}.pdf", b"x") for n in range(500))), Code.ARCHIVE_REFUSED),
        ("a ZIP in a ZIP in a ZIP", _zipped(("a", _zipped(("b", _zipped(("c", pdf)))))), Code.ARCHIVE_REFUSED),
        ("a gzip in a gzip", gzip.compress(gzip.compress(pdf)), Code.ARCHIVE_REFUSED),
        ("names that climb", _zipped(("../../etc/cron.d/x", b"* * * * * root true")), Code.UNSUPPORTED_FORMAT),
        ("a ZIP that unpacks too large", _zipped(("a.pdf", large)), Code.DOCUMENT_TOO_LARGE),
        ("a gzip that unpacks too large", gzip.compress(large), Code.DOCUMENT_TOO_LARGE),
        ("LZMA, whose dictionary may be huge", _zipped(("a", pdf), method=zipfile.ZIP_LZMA), Code.ARCHIVE_REFUSED),
        ("bzip2", _zipped(("a", pdf), method=zipfile.ZIP_BZIP2), Code.ARCHIVE_REFUSED),
        ("an end record alone", b"PK\x05\x06" + bytes(18), Code.ARCHIVE_REFUSED),
        ("an end record that lies", b"PK\x05\x06" + b"\xff" * 18, Code.ARCHIVE_REFUSED),
        ("a ZIP cut short", _zipped(("a.pdf", pdf))[:-9], Code.ARCHIVE_REFUSED),
        ("a gzip cut short", gzip.compress(pdf)[:-9], Code.ARCHIVE_REFUSED),
        ("a gzip with a wrong sum", gzip.compress(pdf)[:-8] + bytes(8), Code.ARCHIVE_REFUSED),
        ("an empty member", _zipped(("a.pdf", b"")), Code.EMPTY_FILE),
    ):
        yield Attack(f"archive: {name}", inline(content), code)


def _pictures() -> Iterator[Attack]:
    yield Attack("picture: 30000 x 30000 in kilobytes", inline(bomb(30_000, 30_000)), Code.DOCUMENT_TOO_LARGE)
    yield Attack("picture: 200000 x 5000", inline(bomb(200_000, 5000)), Code.DOCUMENT_TOO_LARGE)
    small = written(lines_picture((50, 50)), "PNG")
    head = b"IHDR" + (2**31 - 1).to_bytes(4, "big") * 2 + small[24:29]
    lying = small[:12] + head + zlib.crc32(head).to_bytes(4, "big") + small[33:]
    yield Attack("picture: header of 2^31 x 2^31", inline(lying), Code.DOCUMENT_TOO_LARGE)
    yield Attack(
        "picture: header with a wrong sum", inline(small[:18] + b"\xff" + small[19:]), Code.DOCUMENT_UNREADABLE
    )
    gif = b"GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\xff\xff\xff\xff\0\x02\x02L\x01\0;"
    yield Attack("picture: GIF of 65535 x 65535", inline(gif), Code.DOCUMENT_TOO_LARGE)
    yield Attack("picture: TIFF that points to itself", inline(_looping_tiff()), Code.DOCUMENT_UNREADABLE)
    bmp = b"BM" + bytes(12) + (40).to_bytes(4, "little") + b"\xff\xff\xff\x7f" * 2 + b"\1\0\x18\0" + bytes(24)
    yield Attack("picture: BMP of 2^31 x 2^31", inline(bmp), Code.DOCUMENT_TOO_LARGE)


def _looping_tiff() -> bytes:
    entry = b"\0\1\3\0\1\0\0\0\5\0\0\0"
    return b"II*\0\x08\0\0\0" + b"\1\0" + entry + b"\x08\0\0\0"


def _pdfs() -> Iterator[Attack]:
    lost = "failed:page_damaged"
    unreadable = Code.DOCUMENT_UNREADABLE
    yield Attack("pdf: a header and nothing", inline(b"%PDF-1.7\n"), unreadable)
    yield Attack("pdf: brackets 100000 deep", inline(_with_catalogue(b"[" * 100_000)), unreadable)
    yield Attack("pdf: dictionaries 50000 deep", inline(_with_catalogue(b"<</A" * 50_000)), unreadable)
    yield Attack("pdf: page tree that is its own child", inline(_tree(b"2 0 R")), (lost,) * 9)
    yield Attack("pdf: 600 pages where 500 are read", inline(_many_pages(600)), Code.TOO_MANY_PAGES)
    yield Attack("pdf: form that draws itself", inline(_form(b"/Im Do ")), ("blank",))
    yield Attack("pdf: forms that double 30 times", inline(_doubling(30)), ("failed:render_timeout",))
    yield Attack("pdf: 6 MB of operators in a few kB", inline(_flate(b"q 1 0 0 1 0 0 cm Q " * 300_000)), ("blank",))
    yield Attack("pdf: picture of 60000 x 60000", inline(_huge_picture()), (lost,))
    yield Attack("pdf: q 200000 times", inline(page(content=b"q " * 200_000 + TEXT)), ("ok",))
    yield Attack("pdf: locked", inline(_locked()), Code.PASSWORD_REQUIRED)
    yield Attack("pdf: locked, guessed", inline(_locked(), password="' OR 1=1"), Code.PASSWORD_WRONG)
    launch = b"/AA<</O<</S/Launch/F(/bin/sh)>>>>"
    yield Attack("pdf: a page that would launch a program", inline(page(launch)), ("ok",))
    script = b"/AA<</O<</S/JavaScript/JS(app.launchURL\\('http://127.0.0.1'\\))>>>>"
    yield Attack("pdf: a page with a script", inline(page(script)), ("ok",))
    reference = b"/Type/XObject/Subtype/Image/Width 9/Height 9/BitsPerComponent 8/ColorSpace/DeviceGray/F(/etc/passwd)"
    yield Attack("pdf: picture in the file /etc/passwd", inline(_external(reference)), (lost,))


def _with_catalogue(junk: bytes) -> bytes:
    return raw_pdf({1: b"<</Type/Catalog/Pages 2 0 R/Junk " + junk, 2: b"<</Type/Pages/Kids[]/Count 0>>"})


def _tree(kids: bytes) -> bytes:
    return raw_pdf({1: b"<</Type/Catalog/Pages 2 0 R>>", 2: b"<</Type/Pages/Kids[%s]/Count 9>>" % kids})


def _many_pages(count: int) -> bytes:
    return drawn(*[lambda canvas: None] * count)


def _form(content: bytes) -> bytes:
    entries = b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</Im 6 0 R>>>>"
    return page(content=b"/Im Do", objects={6: stream(content, entries)})


def _doubling(levels: int) -> bytes:
    objects = {}
    for level in range(levels):
        entries = b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]/Resources<</XObject<</Im %d 0 R>>>>" % (7 + level)
        objects[6 + level] = stream(b"/Im Do /Im Do", entries)
    objects[6 + levels] = stream(b"0 0 5 5 re f", b"/Type/XObject/Subtype/Form/BBox[0 0 595 842]")
    return page(content=b"/Im Do", objects=objects)


def _flate(content: bytes) -> bytes:
    return page(objects={4: stream(zlib.compress(content, 9), b"/Filter/FlateDecode")})


def _huge_picture() -> bytes:
    packed = zlib.compress(bytes(100_000), 9)
    plain = b"/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/FlateDecode"
    return picture_page(plain, packed).replace(b"/Width 400/Height 500", b"/Width 60000/Height 60000")


def _external(entries: bytes) -> bytes:
    return page(content=b"q 595 0 0 842 0 0 cm /Im Do Q", objects={6: stream(b"", entries)})


def _locked() -> bytes:
    return rc4_40()
