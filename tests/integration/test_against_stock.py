"""On clean pages, the same boxes and the same engine: what stock glmocr 0.1.5 reads, this worker reads as well.

Each box of the pages holds a block of its own colour, by which the engine knows what to say. glmocr's regions are taken
before its formatter.
"""

import asyncio
import base64
import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest
from glmocr.config import load_config
from glmocr.layout.base import BaseLayoutDetector
from glmocr.pipeline import Pipeline
from numpy.typing import NDArray
from PIL import Image

from handler.documents.page import StagedDocument
from handler.documents.pool import RenderPool
from handler.engine.api import EngineRequest
from handler.geometry import PixelBox
from handler.layout.detector import Detection, Pixels
from handler.layout.runner import LayoutRunner
from handler.page_budget import PageBudget
from handler.pages import PageReader, ReadOptions
from handler.recognition.reader import Reader, ReadingPolicy
from handler.recognition.slots import RegionSlots
from handler.schema import DocumentKind, Label, PageResult, RegionResult, RegionStatus
from handler.settings import Settings
from handler.stages import Stages
from tests.fakes.engine import FakeEngine, Said, stop

STOCK = load_config().pipeline
STOCK_TASKS = {label: task for task, labels in STOCK.layout.label_task_mapping.items() for label in labels}
POINTS = 72 / 200
PAGE = (1654, 2339)
LEVELS = (0, 50, 100, 150)
COLOURS = [(r, g, b) for r in LEVELS for g in LEVELS for b in LEVELS]
LABELS = list(Label)
PAGES = 2


@dataclass(frozen=True)
class Block:
    """A box on a page with a block of colour within."""

    page: int
    label: Label
    box: PixelBox
    code: int

    @property
    def text(self) -> str:
        return f"What block {self.code} says, a {self.label.value},\nin two lines: 7.4.1 of 3.14 U.S. ____ ...."


def _page_blocks(page: int, labels: Sequence[Label], first_code: int) -> Iterator[Block]:
    """Two columns, read one after the other; boxes of many sizes, none on another."""
    for position, label in enumerate(labels):
        column, row = divmod(position, 7)
        x0, y0 = 120 + 760 * column, 100 + 310 * row
        box = PixelBox(x0, y0, x0 + 640 - 37 * row, y0 + 90 + 23 * row)
        yield Block(page, label, box, first_code + position)


BLOCKS = [
    *_page_blocks(1, LABELS[:13], 0),
    *_page_blocks(2, LABELS[13:], 13),
]


class StockDetector(BaseLayoutDetector):  # type: ignore[misc]
    """glmocr's side of the layout: the boxes of each page, in thousandths, abandoned labels left out as it does."""

    batch_size = 1

    def __init__(self) -> None:
        self._pages = iter(range(1, PAGES + 1))

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def process(self, images: list[Image.Image], **_: Any) -> tuple[list[list[dict[str, Any]]], dict[int, Any]]:
        return [self._page(image) for image in images], {}

    def _page(self, image: Image.Image) -> list[dict[str, Any]]:
        number = next(self._pages)
        kept = [b for b in BLOCKS if b.page == number and STOCK_TASKS[b.label.value] != "abandon"]
        return [
            {
                "index": index,
                "label": block.label.value,
                "score": 0.9,
                "bbox_2d": [
                    int(block.box.x0 / image.width * 1000),
                    int(block.box.y0 / image.height * 1000),
                    int(block.box.x1 / image.width * 1000),
                    int(block.box.y1 / image.height * 1000),
                ],
                "polygon": None,
                "task_type": STOCK_TASKS[block.label.value],
            }
            for index, block in enumerate(kept)
        ]


class StockClient:
    """glmocr's side of the engine."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def is_alive(self) -> bool:
        return True

    def process(self, request: dict[str, Any]) -> tuple[dict[str, Any], int]:
        parts = request["messages"][-1]["content"]
        url = next(part["image_url"]["url"] for part in parts if part["type"] == "image_url")
        text = next(part["text"] for part in parts if part["type"] == "text")
        said = say(text, base64.b64decode(url.split(",")[-1]))
        return {"choices": [{"message": {"content": said}}]}, 200


class OurDetector:
    """The same boxes for our side, all labels, in pixels."""

    name = "blocks"
    version = None
    batch_size = 1

    def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
        return [self._page(page) for page in pages]

    def _page(self, page: Pixels) -> list[Detection]:
        [number] = {block.page for block in BLOCKS if block.code == code_in(page[:320, :800])}
        return [Detection(b.label, b.box, 0.9) for b in BLOCKS if b.page == number]


def code_in(picture: NDArray[np.uint8]) -> int:
    """Which block is seen: the commonest colour that is not paper."""
    dark = picture.reshape(-1, 3)[picture.reshape(-1, 3).min(axis=1) < 200].astype(int)
    colour = np.median(dark, axis=0)
    return int(np.abs(np.array(COLOURS) - colour).sum(axis=1).argmin())


def say(prompt: str, jpeg: bytes) -> str:
    """What both engines say to a picture. The prompt is part of it, so that a wrong one is seen."""
    with Image.open(io.BytesIO(jpeg)) as image:
        block = BLOCKS[code_in(np.asarray(image.convert("RGB")))]
    return f"[{prompt}] {block.text}"


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("stock") / "blocks.pdf"
    pdf = pymupdf.open()
    for _ in range(PAGES):
        pdf.new_page(width=PAGE[0] * POINTS, height=PAGE[1] * POINTS)
    for block in BLOCKS:
        box = block.box
        rectangle = [
            (box.x0 + box.width // 4) * POINTS,
            (box.y0 + box.height // 4) * POINTS,
            (box.x1 - box.width // 4) * POINTS,
            (box.y1 - box.height // 4) * POINTS,
        ]
        colour = [channel / 255 for channel in COLOURS[block.code]]
        pdf[block.page - 1].draw_rect(pymupdf.Rect(rectangle), color=colour, fill=colour)
    pdf.save(path)
    return path


@pytest.fixture(scope="module")
def stock_pages(document: Path) -> list[list[dict[str, Any]]]:
    pipeline = Pipeline(STOCK, layout_detector=StockDetector())
    pipeline.ocr_client = StockClient()
    source = {"type": "image_url", "image_url": {"url": str(document)}}
    [result] = pipeline.process({"messages": [{"role": "user", "content": [source]}]})
    raw: list[list[dict[str, Any]]] = result.raw_json_result
    return raw


@pytest.fixture(scope="module")
def our_pages(document: Path) -> list[tuple[RegionResult, ...]]:
    staged = StagedDocument(document, DocumentKind.PDF, "0" * 64, document.stat().st_size)

    async def read_all(renderer: RenderPool, layout: LayoutRunner) -> list[PageResult]:
        reader = Reader(FakeEngine(answer), ReadingPolicy(), RegionSlots(8))
        pages = PageReader(renderer, layout, reader, PageBudget(100_000_000))
        outcomes = [await pages.read(staged, number, ReadOptions(), Stages()) for number in range(1, PAGES + 1)]
        return [outcome.result for outcome in outcomes]

    with RenderPool(Settings(render_processes=1)) as renderer, closing(LayoutRunner(OurDetector())) as layout:
        return [page.regions for page in asyncio.run(read_all(renderer, layout))]


def answer(request: EngineRequest) -> Said:
    return stop(say(request.prompt, request.jpeg))


def test_regions_order_and_raw_texts_equal_those_of_stock(
    stock_pages: list[list[dict[str, Any]]], our_pages: list[tuple[RegionResult, ...]]
) -> None:
    read_by_both = {label for label, task in STOCK_TASKS.items() if task in ("text", "table", "formula")}
    stock = [[(r["label"], r["content"]) for r in page if r["label"] in read_by_both] for page in stock_pages]
    ours = [[(r.label.value, r.text) for r in page if r.label in read_by_both] for page in our_pages]
    assert ours == stock
    assert sum(map(len, ours)) == len(read_by_both) == 15


def test_boxes_equal_those_of_stock_but_for_rounding(
    stock_pages: list[list[dict[str, Any]]], our_pages: list[tuple[RegionResult, ...]]
) -> None:
    for stock, ours in zip(stock_pages, our_pages, strict=True):
        boxes = {r.label.value: r.bbox for r in ours}
        for region in stock:
            assert boxes[region["label"]] == pytest.approx(region["bbox_2d"], abs=1)


def test_every_label_that_stock_abandons_is_in_our_result(our_pages: list[tuple[RegionResult, ...]]) -> None:
    regions = {region.label: region for page in our_pages for region in page}
    assert set(regions) == set(Label)
    for label in ("header", "footer", "number", "footnote", "aside_text", "reference"):
        assert regions[Label(label)].status is RegionStatus.OK
        assert regions[Label(label)].text
