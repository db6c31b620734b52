"""Draws the README's picture: a page with the regions found on it, beside the Markdown that came out, as it renders.

    python -m scripts.make_picture examples/scan.pdf out/scan.json docs/demo.png

The result must be of one page (`glmocr-runpod parse --pages 2`).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import pymupdf
from markdown_it import MarkdownIt
from PIL import Image, ImageDraw

DPI = 60
GAP = 16
MARGIN = 40
BACKGROUND = (226, 229, 234)
COLOURS = {"table": (196, 60, 60), "paragraph_title": (40, 110, 200), "header": (130, 130, 130)}
TEXT_COLOUR = (40, 150, 90)
STYLE = """
body { font-family: sans-serif; font-size: 10px; } h2 { font-size: 13px; margin-bottom: 2px; }
td { border: 1px solid #888; padding: 2px; }
"""


def main() -> None:
    """Read the arguments and write the picture."""
    parser = argparse.ArgumentParser(description="Draw a page beside its Markdown.")
    parser.add_argument("document", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    result = json.loads(args.result.read_text("utf-8"))
    side_by_side(marked_page(args.document, result["pages"][0]), rendered(result["markdown"])).quantize(64).save(
        args.picture, optimize=True
    )


def marked_page(document: Path, page: dict[str, Any]) -> Image.Image:
    """The page with a frame around each region."""
    with pymupdf.open(document) as pdf:
        picture = raster(pdf[page["page"] - 1])
    draw = ImageDraw.Draw(picture)
    for region in page["regions"]:
        x0, y0, x1, y1 = (edge / 1000 for edge in region["bbox"])
        frame = (x0 * picture.width - 2, y0 * picture.height - 2, x1 * picture.width + 2, y1 * picture.height + 2)
        draw.rectangle(frame, outline=COLOURS.get(region["label"], TEXT_COLOUR), width=2)
    return picture


def rendered(markdown: str) -> Image.Image:
    """The Markdown as a reader would see it, on one A4 page."""
    html = MarkdownIt("commonmark", {"html": True}).render(markdown)
    with pymupdf.open() as pdf:
        page = pdf.new_page()
        page.insert_htmlbox(pymupdf.Rect(MARGIN, MARGIN, page.rect.x1 - MARGIN, page.rect.y1 - MARGIN), html, css=STYLE)
        return raster(page)


def raster(page: Any) -> Image.Image:
    """A page's pixels, at twice the picture's resolution brought down."""
    pixmap = page.get_pixmap(dpi=2 * DPI)
    picture = Image.frombytes("RGB", (pixmap.width, pixmap.height), pixmap.samples)
    return picture.resize((pixmap.width * 3 // 4, pixmap.height * 3 // 4), Image.Resampling.LANCZOS)


def side_by_side(left: Image.Image, right: Image.Image) -> Image.Image:
    """Both pages on a plain ground."""
    height = max(left.height, right.height)
    ground = Image.new("RGB", (left.width + right.width + 3 * GAP, height + 2 * GAP), BACKGROUND)
    ground.paste(left, (GAP, GAP))
    ground.paste(right, (left.width + 2 * GAP, GAP))
    return ground


if __name__ == "__main__":
    main()
