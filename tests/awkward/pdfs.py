"""PDFs that are damaged, locked, turned, huge, tiny or odd."""

import io
import zlib
from collections.abc import Callable, Iterator

from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from handler.documents.lean import pymupdf
from handler.schema import ErrorCode
from tests.awkward.case import Case
from tests.support.raw_pdf import Objects, raw_pdf, stream

A4 = (595.0, 842.0)
Draw = Callable[[Canvas], None]
TEXT = b"BT /F1 11 Tf 60 760 Td 14 TL (Level lines begin at the left) Tj T* (and some) Tj T* (end early) Tj ET"


def lines(canvas: Canvas) -> None:
    """Lines of text that begin at the left and end at different places."""
    canvas.setFont("Helvetica", 12)
    for number in range(30):
        words = "the quick brown fox jumps over the lazy dog"[: 20 + number * 7 % 23]
        canvas.drawString(60, 780 - 20 * number, f"{number}: {words}")


def nothing(canvas: Canvas) -> None:
    """An empty page."""


def turned(angle: int) -> Draw:
    """The lines turned clockwise on the page, without a /Rotate."""

    def draw(canvas: Canvas) -> None:
        canvas.translate(A4[0] / 2, A4[1] / 2)
        canvas.rotate(-angle)
        width, height = A4 if angle % 180 == 0 else A4[::-1]
        canvas.translate(-width / 2, -height / 2 - (0 if angle % 180 == 0 else 200))
        lines(canvas)

    return draw


def drawn(*pages: Draw, size: tuple[float, float] = A4, encrypt: StandardEncryption | None = None) -> bytes:
    """A PDF by reportlab."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=size, invariant=True, encrypt=encrypt, pageCompression=1)
    for page in pages:
        page(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def three() -> bytes:
    """Three pages of text."""
    return drawn(lines, lines, lines)


def page(
    entries: bytes = b"", content: bytes = TEXT, box: bytes = b"0 0 595 842", objects: Objects | None = None
) -> bytes:
    """A one-page PDF with further page entries and objects."""
    others = objects or {}
    return raw_pdf(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            3: b"<</Type/Page/Parent 2 0 R/MediaBox[" + box + b"]/Contents 4 0 R"
            b"/Resources<</Font<</F1 5 0 R>>"
            + (b"/XObject<</Im 6 0 R>>" if 6 in others else b"")
            + b">>"
            + entries
            + b">>",
            4: stream(content),
            5: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            **others,
        }
    )


def picture_page(dictionary: bytes, data: bytes) -> bytes:
    """A page that shows one picture over all of it."""
    picture = stream(data, b"/Type/XObject/Subtype/Image/Width 400/Height 500" + dictionary)
    return page(content=b"q 595 0 0 842 0 0 cm /Im Do Q", objects={6: picture})


def jpeg_2000() -> bytes:
    """The picture of lines, as JPEG 2000."""
    buffer = io.BytesIO()
    lines_picture().resize((400, 500)).save(buffer, "JPEG2000")
    return buffer.getvalue()


def lines_picture(size: tuple[int, int] = (800, 1000), mode: str = "L") -> Image.Image:
    """Dark lines on light paper that begin at the left."""
    image = Image.new("L", size, 245)
    width, height = size
    for number in range(25):
        top = int(height * (0.1 + 0.03 * number))
        right = int(width * (0.45 + 0.2 * (number % 3) / 2))
        for left in range(int(width * 0.1), right, max(4, width // 100)):
            image.paste(20, (left, top, left + max(2, width // 200), top + max(2, height // 100)))
    return image.convert(mode)


def jpeg_cut_short() -> bytes:
    """A scan whose JPEG ends in its middle."""
    buffer = io.BytesIO()
    lines_picture((400, 500)).save(buffer, "JPEG")
    return picture_page(b"/ColorSpace/DeviceGray/BitsPerComponent 8/Filter/DCTDecode", buffer.getvalue()[:6000])


def plain_cut_short() -> bytes:
    """A scan stored as it is, of which the last quarter is not there."""
    picture = lines_picture((400, 500)).tobytes()
    return picture_page(b"/ColorSpace/DeviceGray/BitsPerComponent 8", picture[: len(picture) * 3 // 4])


def half() -> bytes:
    """Cut in the middle: pages of the second half have lost their contents."""
    content = three()
    return content[: len(content) // 2]


def encrypted(user: str, owner: str, method: int) -> bytes:
    """Locked by MuPDF."""
    document = pymupdf.open(stream=drawn(lines), filetype="pdf")
    content: bytes = document.tobytes(encryption=method, user_pw=user, owner_pw=owner)
    return content


def rc4_40() -> bytes:
    """The oldest encryption."""
    return drawn(lines, encrypt=StandardEncryption("user", "owner", strength=40))


def rotated(angle: int) -> bytes:
    """Level lines by /Rotate."""
    document = pymupdf.open(stream=drawn(turned(-angle % 360)), filetype="pdf")
    document[0].set_rotation(angle)
    content: bytes = document.tobytes()
    return content


def saved(**options: int) -> bytes:
    """Written anew by MuPDF with these options."""
    content: bytes = pymupdf.open(stream=three(), filetype="pdf").tobytes(**options)
    return content


def incremental() -> bytes:
    """A second revision appended."""
    document = pymupdf.open(stream=three(), filetype="pdf")
    buffer = io.BytesIO(three())
    document[1].insert_text((60, 60), "second revision")
    document.save(buffer, incremental=False)
    return buffer.getvalue()


def annotated() -> bytes:
    """The only ink is an annotation's."""
    document = pymupdf.open()
    text = "\n".join("annotated line number " + "x" * (n % 9) for n in range(20))
    document.new_page().add_freetext_annot(pymupdf.Rect(50, 50, 400, 600), text, fontsize=14)
    content: bytes = document.tobytes()
    return content


def form() -> bytes:
    """The only ink is in a filled form field."""
    document = pymupdf.open()
    shown = document.new_page()
    for number in range(12):
        field = pymupdf.Widget()
        field.field_type = pymupdf.PDF_WIDGET_TYPE_TEXT
        field.field_name = f"field {number}"
        field.field_value = "filled in by hand"[: 9 + number * 5 % 8]
        field.rect = pymupdf.Rect(50, 50 + 40 * number, 300, 80 + 40 * number)
        shown.add_widget(field)
    content: bytes = document.tobytes()
    return content


def contents_lost() -> bytes:
    """/Contents names an object that is no stream."""
    return page(objects={4: b"<</Length 0>>"})


def contents_part_lost() -> bytes:
    """One of two content streams is missing."""
    return page().replace(b"/Contents 4 0 R", b"/Contents [4 0 R 9 0 R]")


def flate_broken() -> bytes:
    """The second of three pages has a corrupt stream."""
    packed = zlib.compress(TEXT * 20)
    broken = packed[:4] + bytes(len(packed) - 4)
    good = stream(TEXT)
    pages = {n: b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R"
             b"/Resources<</Font<</F1 9 0 R>>>>>>" % (n + 3) for n in (3, 4, 5)}  # fmt: skip
    return raw_pdf(
        {
            1: b"<</Type/Catalog/Pages 2 0 R>>",
            2: b"<</Type/Pages/Kids[3 0 R 4 0 R 5 0 R]/Count 3>>",
            **pages,
            6: good,
            7: stream(broken, b"/Filter/FlateDecode"),
            8: good,
            9: b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        }
    )


def tree(kids: bytes, count: int) -> bytes:
    """Three pages behind a page tree that lies."""
    return three().replace(_kids(), b"/Kids [ " + kids + b" ]").replace(b"/Count 3", b"/Count %d" % count)


def _kids() -> bytes:
    content = three()
    start = content.index(b"/Kids")
    return content[start : content.index(b"]", start) + 1]


def kid_numbers() -> bytes:
    """What stands between the brackets of /Kids."""
    return _kids()[_kids().index(b"[") + 1 : -1].strip()


def cases() -> Iterator[Case]:
    """All of them."""
    ok = "ok"
    yield Case("three pages", three, (ok, ok, ok))
    yield Case("pages chosen", three, (ok, ok), {"pages": "3,1"})
    yield Case("pages beyond the end", three, ErrorCode.PAGES_OUT_OF_RANGE, {"pages": "7-"})
    yield Case("blank page between", lambda: drawn(lines, nothing, lines), (ok, "blank", ok))
    yield Case("only blank pages", lambda: drawn(nothing, nothing), ("blank", "blank"))
    yield from _damaged()
    yield from _locked()
    yield from _turned()
    yield from _sized()
    yield from _inked()


def _damaged() -> Iterator[Case]:
    ok, lost = "ok", "failed:page_damaged"
    yield Case("300 bytes of junk before the header", lambda: b"junk\r\n" * 50 + three(), (ok, ok, ok))
    yield Case(
        "1500 bytes of junk before the header", lambda: b"\x01junk\r\n" * 300 + three(), ErrorCode.UNSUPPORTED_FORMAT
    )
    yield Case("junk after the end", lambda: three() + b"\0" * 3000, (ok, ok, ok))
    yield Case("cut to its half", half, ("ok+page_damaged", lost, lost))
    yield Case("cut to 100 bytes", lambda: three()[:100], ErrorCode.DOCUMENT_UNREADABLE)
    yield Case("only a header", lambda: b"%PDF-1.7\n", ErrorCode.DOCUMENT_UNREADABLE)
    yield Case("no bytes", lambda: b"", ErrorCode.EMPTY_FILE)
    yield Case("end cut off", lambda: three()[:-40], (ok, ok, ok))
    yield Case("startxref points nowhere", lambda: three().replace(b"startxref\n", b"startxref\n9"), (ok, ok, ok))
    yield Case("no cross-reference table", lambda: three().replace(b"xref\n", b"xxxx\n"), (ok, ok, ok))
    yield Case("page tree names a missing object", lambda: tree(b"99 0 R " + kid_numbers(), 4), (lost, ok, ok, ok))
    yield Case("page count too large", lambda: tree(kid_numbers(), 9), (ok, ok, ok))
    yield Case("page count too small", lambda: tree(kid_numbers(), 1), (ok, ok, ok))
    yield Case("page count absurd", lambda: tree(kid_numbers(), 2**31 - 1), (ok, ok, ok))
    yield Case("no pages", lambda: tree(b"", 0), ErrorCode.DOCUMENT_UNREADABLE)
    yield Case("contents are no stream", contents_lost, (lost,))
    yield Case("half of the contents missing", contents_part_lost, ("ok+page_damaged",))
    yield Case("no contents", lambda: page().replace(b"/Contents 4 0 R", b""), ("blank",))
    yield Case("corrupt stream on page 2 of 3", flate_broken, (ok, lost, ok))
    yield Case(
        "wrong stream length",
        lambda: page(objects={4: b"<</Length 7>>\nstream\n" + TEXT + b"\nendstream"}),
        ("ok+other",),
    )
    yield Case(
        "broken operators", lambda: page(content=b"/Gs gs Q Q BT /F9 12 Tf (x) Tj ET " + TEXT), ("ok+page_damaged",)
    )
    yield Case("bogus JPEG 2000 picture", lambda: picture_page(b"/Filter/JPXDecode", b"nonsense" * 40), (lost,))
    yield Case(
        "picture in an unknown colour space",
        lambda: picture_page(b"/ColorSpace/Mystery/BitsPerComponent 8", lines_picture((400, 500)).tobytes()),
        (lost,),
    )
    yield Case("JPEG picture cut short", jpeg_cut_short, ("ok+page_damaged",))
    yield Case("plain picture cut short", plain_cut_short, ("ok+page_damaged",))


def _locked() -> Iterator[Case]:
    ok = ("ok",)
    for name, method in (("AES-256", pymupdf.PDF_ENCRYPT_AES_256), ("RC4-128", pymupdf.PDF_ENCRYPT_RC4_128)):

        def locked(user: str, method: int = method) -> Callable[[], bytes]:
            return lambda: encrypted(user, "owner", method)

        yield Case(f"{name}, no password given", locked("user"), ErrorCode.PASSWORD_REQUIRED)
        yield Case(f"{name}, wrong password", locked("user"), ErrorCode.PASSWORD_WRONG, {"password": "guess"})
        yield Case(f"{name}, right password", locked("user"), ok, {"password": "user"})
        yield Case(f"{name}, owner's password", locked("user"), ok, {"password": "owner"})
        yield Case(f"{name}, locked by the owner only", locked(""), ok)
    yield Case("RC4-40, right password", rc4_40, ok, {"password": "user"})
    yield Case("RC4-40, no password given", rc4_40, ErrorCode.PASSWORD_REQUIRED)
    yield Case("password for an open file", lambda: drawn(lines), ok, {"password": "needless"})


def _turned() -> Iterator[Case]:
    for angle in (90, 180, 270):
        yield Case(f"turned upright by /Rotate {angle}", lambda angle=angle: rotated(angle), ("ok",))
        yield Case(f"lies turned by {angle}", lambda angle=angle: drawn(turned(angle)), (f"ok@{360 - angle}",))
    yield Case("/Rotate of no right angle", lambda: page(b"/Rotate 45"), ("ok",))


def _sized() -> Iterator[Case]:
    down, up = "ok+page_scaled_down", "ok+page_scaled_up"
    big = b"BT /F1 900 Tf 200 12000 Td 1200 TL (Level lines) Tj T* (begin) Tj T* (at left) Tj ET"
    yield Case("14400 x 14400 points", lambda: page(content=big, box=b"0 0 14400 14400"), (down,))
    yield Case(
        "A0 at 300 dpi", lambda: page(content=b".25 0 0 .25 0 0 cm " + big, box=b"0 0 2384 3370"), (down,), {"dpi": 300}
    )
    long = b"BT /F1 8 Tf 5 2 Td (" + b"a long line of text " * 20 + b") Tj ET"
    yield Case("14400 x 10 points", lambda: page(content=long, box=b"0 0 14400 10"), ("ok",), {"dpi": 150})
    small = b"BT /F1 6 Tf 1 10 Td 5 TL (ab) Tj T* (c) Tj ET"
    yield Case("20 x 20 points", lambda: page(content=small, box=b"0 0 20 20"), (up,))
    yield Case("1 x 1 point", lambda: page(content=b"", box=b"0 0 1 1"), ("blank+page_scaled_up",))
    yield Case("box without an extent", lambda: page(box=b"0 0 0 0"), ("ok",))
    yield Case("box inside out", lambda: page(box=b"595 842 0 0"), ("ok",))
    yield Case("box away from the origin", lambda: page(box=b"-100 -100 495 800"), ("ok",))
    yield Case("crop box", lambda: page(b"/CropBox[50 600 400 800]"), ("ok",))
    yield Case("user unit of 2", lambda: page(b"/UserUnit 2"), ("ok",))


def _inked() -> Iterator[Case]:
    ok = ("ok",)
    plain = b"/ColorSpace/DeviceGray/BitsPerComponent 8"
    grey = lines_picture((400, 500))
    yield Case(
        "scan without text", lambda: picture_page(b"/ColorSpace/DeviceGray/BitsPerComponent 8", grey.tobytes()), ok
    )
    yield Case(
        "bitonal scan",
        lambda: picture_page(b"/ColorSpace/DeviceGray/BitsPerComponent 1", grey.convert("1").tobytes()),
        ok,
    )
    yield Case(
        "white scan",
        lambda: picture_page(plain, b"\xff" * 200_000),
        ("blank",),
    )
    yield Case("JPEG 2000 picture", lambda: picture_page(b"/Filter/JPXDecode", jpeg_2000()), ok)
    yield Case("white on black", lambda: page(content=b"0 g 0 0 595 842 re f 1 g " + TEXT), ok)
    yield Case("white on white", lambda: page(content=b"1 g " + TEXT), ("blank",))
    yield Case("invisible text", lambda: page(content=b"3 Tr " + TEXT), ("blank",))
    yield Case(
        "one small number that layout does not see",
        lambda: page(content=b"BT /F1 12 Tf 290 40 Td (17) Tj ET"),
        ("blank",),
    )
    yield Case("annotation only", annotated, ok)
    yield Case("filled form only", form, ok)
    yield Case("object streams", lambda: saved(use_objstms=1), ("ok", "ok", "ok"))
    yield Case("cleaned and packed", lambda: saved(garbage=4, deflate=1, clean=1), ("ok", "ok", "ok"))
    yield Case("revision appended", incremental, ("ok", "ok", "ok"))
