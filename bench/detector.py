"""A layout model that knows the corpus: it sleeps as long as a real one would take and returns the known regions.

The same answers for both sides: `FakeDetector` for this worker, `stock_detector` for glmocr's pipeline.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.corpus.marks import read_mark
from bench.corpus.pages import BOX_SCALE, Region
from handler.geometry import PixelBox
from handler.layout.detector import Detection, Pixels
from handler.schema import Label

LAYOUT_S = 0.025
TASKS = {"table": "table", "display_formula": "formula", "image": "skip"}
SCORE = 0.9


class KnownRegions:
    """The corpus's regions, looked up by the mark on the page."""

    def __init__(self, manifest: Path, seconds_per_page: float) -> None:
        found = json.loads(manifest.read_text())
        self._regions = {int(n): [Region(r["label"], tuple(r["box"])) for r in page] for n, page in found.items()}
        self._seconds = seconds_per_page

    def of(self, pages: Sequence[Pixels]) -> list[list[Region]]:
        """The regions of each page, after as long as a layout model takes; sleeping, since that one is on the GPU."""
        time.sleep(self._seconds * len(pages))
        return [self._regions[read_mark(page)] for page in pages]


class FakeDetector:
    """`handler.layout.detector.Detector` over the known regions."""

    name = "bench"
    version = None
    batch_size = 1

    def __init__(self, regions: KnownRegions) -> None:
        self._regions = regions

    def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
        """As the protocol says."""
        found = self._regions.of(pages)
        return [
            [_detection(r, page.shape[1], page.shape[0]) for r in regions]
            for page, regions in zip(pages, found, strict=True)
        ]


def _detection(region: Region, width: int, height: int) -> Detection:
    return Detection(Label(region.label), box_of(region, width, height), SCORE)


def box_of(region: Region, width: int, height: int) -> PixelBox:
    """Pixels as glmocr computes them from thousandths, so that both sides cut the same."""
    x0, y0, x1, y1 = region.box
    return PixelBox(
        x0 * width // BOX_SCALE, y0 * height // BOX_SCALE, x1 * width // BOX_SCALE, y1 * height // BOX_SCALE
    )


def stock_detector(regions: KnownRegions) -> Any:
    """A detector for glmocr's pipeline, batch size 1 as in its packaged configuration."""
    from glmocr.layout.base import BaseLayoutDetector

    class StockDetector(BaseLayoutDetector):  # type: ignore[misc]
        batch_size = 1

        def start(self) -> None: ...

        def stop(self) -> None: ...

        def process(self, images: Sequence[Any], **_: object) -> tuple[list[list[dict[str, object]]], dict[int, Any]]:
            found = regions.of([np.asarray(image) for image in images])
            return [[_stock_region(i, r) for i, r in enumerate(page)] for page in found], {}

    return StockDetector(None)


def _stock_region(index: int, region: Region) -> dict[str, object]:
    return {
        "index": index,
        "label": region.label,
        "score": SCORE,
        "bbox_2d": list(region.box),
        "polygon": None,
        "task_type": TASKS.get(region.label, "text"),
    }
