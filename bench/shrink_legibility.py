"""How legible a scan stays when Ghostscript shrinks it: words that tesseract still reads, as shares of those known.

    PYTHONPATH=client python -m bench.shrink_legibility [--pages 3] [--dpi 300] [--points 11]

Needs `gs` and `tesseract` (Debian: ghostscript, tesseract-ocr). The field measured 97 % at 150 DPI, 93 % at 100 and
45 % at 72, which is why 72 is never used.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from typing import Any

import pypdfium2
from glmocr_runpod import shrink

from tests.client import scans

READ_DPI = 300
"""Tesseract reads best near 300 DPI; smaller pictures are enlarged, as an OCR chain does."""


def main() -> int:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=3)
    parser.add_argument("--dpi", type=int, default=300)
    parser.add_argument("--grain", type=float, default=25)
    parser.add_argument("--points", type=float, default=11, help="size of the text")
    options = parser.parse_args()
    program = shrink.ghostscript()
    if program is None:
        print("gs is not installed", file=sys.stderr)
        return 1
    print(json.dumps(measure(program, options.pages, options.dpi, options.grain, options.points), indent=2))
    return 0


def measure(program: str, pages: int, dpi: int, grain: float, points: float) -> dict[str, Any]:
    """Word match and bytes as scanned and at each resolution."""
    scan = scans.scan(dpi, range(1, pages + 1), grain=grain, points=points)
    known = [word for page in range(1, pages + 1) for line in scans.text_lines(page) for word in line.split()]
    figures = {"as scanned": _figures(scan, known)}
    for resolution, preset in (*shrink.LADDER, (72, "/screen")):
        sent = shrink.rewrite(scan, program, resolution, preset, shrink.TIMEOUT_S)
        if isinstance(sent, str):
            raise RuntimeError(sent)
        figures[f"{resolution} DPI"] = _figures(sent, known)
    return {"pages": pages, "dpi": dpi, "grain": grain, "points": points, "words": len(known), **figures}


def _figures(pdf: bytes, known: list[str]) -> dict[str, Any]:
    read = Counter(word for page in _pictures(pdf) for word in _read(page))
    matched = sum((Counter(known) & read).values())
    return {"bytes": len(pdf), "word_match": round(matched / len(known), 4)}


def _pictures(pdf: bytes) -> list[Any]:
    document = pypdfium2.PdfDocument(pdf)
    pictures = [page.render(scale=READ_DPI / 72, grayscale=True).to_pil() for page in document]
    document.close()
    return pictures


def _read(picture: Any) -> list[str]:
    with tempfile.NamedTemporaryFile(suffix=".png") as file:
        picture.save(file.name)
        said = subprocess.run(["tesseract", file.name, "-", "--psm", "6"], capture_output=True, text=True, check=True)
    return said.stdout.split()


if __name__ == "__main__":
    sys.exit(main())
