"""Writes the example documents, their known text and the golden page: same bytes on every run.

    python -m scripts.make_examples [DIRECTORY]

The text is in `scripts/example_text.py`, so what the pages say and what the tests expect cannot drift apart.
"""

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pymupdf
from PIL import Image, ImageFilter
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, Table, TableStyle

from scripts.example_text import GOLDEN, PAGES, Block, Columns, Grid, Heading, Page, Prose, Title, page_text

MARGIN = 25 * mm
SCAN_DPI = 200
SCAN_TILT_DEGREES = 0.7
SCAN_JPEG_QUALITY = 30
PHOTO_DPI = 170
EXIF_ORIENTATION = 0x0112
EXIF_TURN_CLOCKWISE = 6
PAPER = 255
DESK = (92, 74, 58)

LINE_HEIGHT = 15.0
GAP = 8.0
BODY = ParagraphStyle("body", fontName="Times-Roman", fontSize=11, leading=LINE_HEIGHT)
HEADING = ParagraphStyle("heading", fontName="Helvetica-Bold", fontSize=13, leading=17)
TITLE = ParagraphStyle("title", fontName="Helvetica-Bold", fontSize=20, leading=26, alignment=1)
CELL = ParagraphStyle("cell", fontName="Helvetica", fontSize=10, leading=12)


def main(root: Path) -> None:
    """Write everything under `root`, the repository's directory."""
    examples, golden = root / "examples", root / "handler" / "golden"
    examples.mkdir(parents=True, exist_ok=True)
    golden.mkdir(parents=True, exist_ok=True)
    born_digital = pdf_of_pages(PAGES)
    (examples / "agreement.pdf").write_bytes(born_digital)
    (examples / "agreement.txt").write_text("\f".join(page_text(page) for page in PAGES), encoding="utf-8")
    pictures = rasterise(born_digital, SCAN_DPI)
    (examples / "scan.pdf").write_bytes(pdf_of_pictures([scanned(picture, n) for n, picture in enumerate(pictures)]))
    (examples / "photo.jpg").write_bytes(photographed(rasterise(born_digital, PHOTO_DPI)[0]))
    (golden / "page.pdf").write_bytes(pdf_of_pages([GOLDEN]))
    expected = {"words": page_text(GOLDEN).split(), "labels": ["text", "table"]}
    (golden / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


def pdf_of_pages(pages: Sequence[Page]) -> bytes:
    """The pages as a PDF with a text layer."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    canvas.setTitle("Service agreement")
    for page in pages:
        draw_page(canvas, page)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def draw_page(canvas: Canvas, page: Page) -> None:
    """One page: running header, blocks from top to bottom, page number."""
    width, height = A4
    canvas.setFont("Helvetica", 9)
    canvas.drawString(MARGIN, height - 14 * mm, page.header)
    canvas.line(MARGIN, height - 16 * mm, width - MARGIN, height - 16 * mm)
    canvas.drawCentredString(width / 2, 12 * mm, page.number)
    top = height - 26 * mm
    for block in page.blocks:
        top = draw_block(canvas, block, top)


def draw_block(canvas: Canvas, block: Block, top: float) -> float:
    """Draw one block below `top`, in points from the bottom of the page; returns where the next one starts."""
    width = A4[0] - 2 * MARGIN
    match block:
        case Title(text):
            return place(canvas, Paragraph(text, TITLE), MARGIN, top, width) - 14.0
        case Heading(text):
            return place(canvas, Paragraph(text, HEADING), MARGIN, top - HEADING.spaceBefore, width) - 5.0
        case Prose(text):
            return place(canvas, Paragraph(text, BODY), MARGIN, top, width) - GAP
        case Grid(rows):
            return place(canvas, ruled_table(rows, width), MARGIN, top, width) - 12
        case Columns(left, right):
            gap = 10 * mm
            column = (width - gap) / 2
            ends = [
                place_lines(canvas, left, MARGIN, top),
                place_lines(canvas, right, MARGIN + column + gap, top),
            ]
            return min(ends) - GAP


def place(canvas: Canvas, flowable: Flowable, x: float, top: float, width: float) -> float:
    """Draw a flowable with its upper left corner at `x`, `top`; returns its lower edge."""
    _, height = flowable.wrap(width, top)
    flowable.drawOn(canvas, x, top - height)
    return float(top - height)


def place_lines(canvas: Canvas, lines: Sequence[str], x: float, top: float) -> float:
    """Draw numbered lines one below the other; returns the lower edge of the last."""
    canvas.setFont(BODY.fontName, BODY.fontSize)
    for line in lines:
        top -= LINE_HEIGHT
        canvas.drawString(x, top, line)
    return top


def ruled_table(rows: Sequence[Sequence[str]], width: float) -> Table:
    """A table with a rule around every cell."""
    cells = [[Paragraph(text, CELL) for text in row] for row in rows]
    table = Table(cells, colWidths=[width / len(rows[0])] * len(rows[0]))
    table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.8, colors.black), ("VALIGN", (0, 0), (-1, -1), "MIDDLE")]))
    return table


def rasterise(pdf: bytes, dpi: int) -> list[Image.Image]:
    """Every page as a grey picture at `dpi`."""
    with pymupdf.open(stream=pdf, filetype="pdf") as document:
        pixmaps = [page.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY) for page in document]
        return [Image.frombytes("L", (pixmap.width, pixmap.height), pixmap.samples) for pixmap in pixmaps]


def scanned(picture: Image.Image, seed: int) -> bytes:
    """The page as a scanner would give it: turned a little, noisy, JPEG."""
    turned = picture.rotate(SCAN_TILT_DEGREES, Image.Resampling.BICUBIC, fillcolor=PAPER)
    return jpeg(noisy(turned, sigma=5.0, seed=seed), SCAN_JPEG_QUALITY)


def photographed(picture: Image.Image) -> bytes:
    """The page as a telephone would give it: on a desk, unevenly lit, a little soft, stored on its side."""
    border = picture.width // 14
    desk = Image.new("RGB", (picture.width + 2 * border, picture.height + 2 * border), DESK)
    desk.paste(picture.convert("RGB"), (border, border))
    soft = shaded(desk).filter(ImageFilter.GaussianBlur(0.6))
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = EXIF_TURN_CLOCKWISE
    return jpeg(noisy(soft, sigma=3.0, seed=7).transpose(Image.Transpose.ROTATE_90), 70, exif)


def shaded(picture: Image.Image) -> Image.Image:
    """Light that falls off from the upper left to the lower right corner."""
    down, across = np.linspace(0.0, 1.0, picture.height), np.linspace(0.0, 1.0, picture.width)
    light = 1.0 - 0.28 * (down[:, None] + across[None, :]) / 2
    return Image.fromarray((np.asarray(picture) * light[:, :, None]).astype(np.uint8))


def noisy(picture: Image.Image, sigma: float, seed: int) -> Image.Image:
    """Sensor noise with a fixed seed."""
    pixels = np.asarray(picture, dtype=np.float64)
    noise = np.random.default_rng(seed).normal(0.0, sigma, pixels.shape)
    return Image.fromarray(np.clip(pixels + noise, 0, PAPER).astype(np.uint8))


def jpeg(picture: Image.Image, quality: int, exif: Image.Exif | None = None) -> bytes:
    """The picture as a JPEG file."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality, exif=exif or Image.Exif())
    return buffer.getvalue()


def pdf_of_pictures(pictures: Sequence[bytes]) -> bytes:
    """One A4 page for each JPEG, no text layer."""
    with pymupdf.open() as document:
        for picture in pictures:
            page = document.new_page(width=A4[0], height=A4[1])
            page.insert_image(page.rect, stream=picture)
        return bytes(document.tobytes(no_new_id=True, garbage=3))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
