"""What the published model made of real documents. Not part of the project: tests over it skip where it is absent."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

FOLDER = Path(os.environ.get("REAL_DOCUMENTS", Path(__file__).parents[2] / "shared" / "real-documents"))

A4_AT_200_DPI = (1654, 2339)

needs_real_documents = pytest.mark.skipif(
    not FOLDER.is_dir(), reason=f"the published model's results are not here: {FOLDER} (set REAL_DOCUMENTS)"
)


@dataclass(frozen=True)
class RealRegion:
    """One region as the SDK's JSON has it, after its formatting: label is text, table, formula or image."""

    label: str
    text: str
    box: tuple[int, int, int, int]
    """Thousandths of the page."""
    width: int
    """Pixels of the crop."""
    height: int


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json")) if FOLDER.is_dir() else []


def pages(name: str) -> list[list[RealRegion]]:
    size = _page_size(name)
    document = json.loads((FOLDER / f"{name}.json").read_text())
    return [[_region(region, size) for region in page] for page in document]


def sdk_markdown(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text()


def all_regions() -> Iterator[RealRegion]:
    return (region for name in names() for page in pages(name) for region in page)


def estimated_tokens(text: str) -> int:
    """An estimate from above: one token per 4 Latin letters, per digit, per other character, per line break."""
    return len(re.findall(r"[A-Za-z]{1,4}|\d|[^\x00-\x7f]|[^\sA-Za-z\d]|\n", text))


def _page_size(name: str) -> tuple[int, int]:
    picture = FOLDER / f"{name}.png"
    if not picture.exists():
        return A4_AT_200_DPI
    with Image.open(picture) as image:
        return image.size


def _region(region: dict[str, Any], size: tuple[int, int]) -> RealRegion:
    x0, y0, x1, y1 = region["bbox_2d"] or (0, 0, 1000, 1000)
    width, height = (x1 - x0) * size[0] // 1000, (y1 - y0) * size[1] // 1000
    return RealRegion(region["label"], region["content"] or "", (x0, y0, x1, y1), max(28, width), max(28, height))
