"""Scans of any size, as scanners make them: one JPEG per page, text on grainy paper."""

import io
import random
from collections.abc import Sequence

import numpy as np
import pypdfium2
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

A4 = (595, 842)
LINES = 40
WORDS = (
    *("agreement", "between", "parties", "payment", "within", "thirty", "days", "after", "receipt", "of", "invoice"),
    *("total", "amount", "due", "notice", "shall", "be", "given", "written", "form", "liability", "limited", "damages"),
    *("caused", "gross", "negligence", "term", "begins", "signature", "ends", "months", "unless", "extended", "mutual"),
    *("consent", "confidential", "information", "remains", "property", "disclosing", "party", "governing", "court"),
)


def text_lines(seed: int, words: int = 9) -> list[str]:
    drawn = random.Random(seed)
    return [
        " ".join(drawn.choice(WORDS) for _ in range(words - 1)) + f" {drawn.randint(100, 99999)}" for _ in range(LINES)
    ]


def page_image(dpi: int, seed: int, *, grain: float, points: float = 11) -> Image.Image:
    """One page of text in grey with `grain` as the noise's standard deviation."""
    width, height = round(8.27 * dpi), round(11.69 * dpi)
    sheet = Image.new("L", (width, height), 245)
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(dpi * points / 72)
    for number, line in enumerate(text_lines(seed)):
        pen.text((round(0.7 * dpi), round((0.7 + number * 10 / LINES) * dpi)), line, font=font, fill=25)
    if not grain:
        return sheet
    pixels = np.asarray(sheet).astype(np.int16)
    tile = np.random.default_rng(seed).normal(0, grain, (256, 256)).astype(np.int16)
    for top in range(0, height, 256):
        for left in range(0, width, 256):
            field = pixels[top : top + 256, left : left + 256]
            field += tile[: field.shape[0], : field.shape[1]]
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def scan(
    dpi: int,
    pages: Sequence[int],
    *,
    grain: float = 25,
    quality: int = 85,
    points: float = 11,
    turn: int = 0,
    half: bool = False,
) -> bytes:
    """A PDF with one scanned page per seed; turned by `turn` degrees, or with its lower half missing."""
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=A4, invariant=1)
    for seed in pages:
        jpeg = io.BytesIO()
        page_image(dpi, seed, grain=grain, points=points).save(jpeg, "JPEG", quality=quality)
        canvas.setPageRotation(turn)
        canvas.drawImage(ImageReader(jpeg), 0, 0, *A4)
        canvas.drawString(20, 20, f"page {seed}")
        if half:
            canvas.setFillGray(1)
            canvas.rect(0, 0, A4[0], A4[1] / 2, stroke=0, fill=1)
        canvas.showPage()
    canvas.save()
    return written.getvalue()


def joined(*files: bytes) -> bytes:
    """The pages of several PDFs in one."""
    whole = pypdfium2.PdfDocument.new()
    for file in files:
        whole.import_pages(pypdfium2.PdfDocument(file))
    written = io.BytesIO()
    whole.save(written)
    return written.getvalue()


def bilevel(dpi: int) -> bytes:
    """A one-page G4 fax scan."""
    written = io.BytesIO()
    page_image(dpi, 1, grain=0).convert("1").save(written, "PDF", resolution=dpi)
    return written.getvalue()
