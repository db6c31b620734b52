"""The documents: a long agreement, scans, a mixture, and many short ones. Made once and kept under `.cache/bench`."""

import hashlib
import io
import json
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pymupdf
import simplejpeg
from reportlab.pdfgen.canvas import Canvas

from bench.corpus.marks import PAGE_HEIGHT, PAGE_WIDTH
from bench.corpus.pages import PageMaker, PageWriter, Region, agreement_page, mixed_page

CACHE = Path(__file__).parents[2] / ".cache" / "bench"
AGREEMENT_PAGES = 155
LONG_PAGES = 620
SCANS_FROM = 700
MIXED_FROM = 800
SHORT_FROM = 900
WARM_UP_FROM = 1000
SHORT_DOCUMENTS = 16
SHORT_PAGES = 3
JPEG_QUALITY = 80
NOISE = 5.0
PAPER = (1.0, 0.985, 0.95)
"""White paper as a scanner sees it, by channel: not grey."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Where the documents lie, and the regions of every page by its mark."""

    directory: Path

    @property
    def manifest(self) -> Path:
        """JSON: page mark -> regions."""
        return self.directory / "regions.json"

    def path(self, name: str) -> Path:
        """One document."""
        return self.directory / f"{name}.pdf"

    @property
    def warm_up(self) -> Path:
        """Read once before anything is measured."""
        return self.path("warm-up")

    def regions_read(self, names: Iterable[str]) -> int:
        """How many regions of these documents have text to read."""
        counts = json.loads((self.directory / "counts.json").read_text())
        return sum(counts[name] for name in names)

    @property
    def short(self) -> list[Path]:
        """The 16 documents of 3 pages."""
        return [self.path(f"short-{i:02}") for i in range(SHORT_DOCUMENTS)]


class _Maker:
    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.regions: dict[int, list[Region]] = {}
        self.counts: dict[str, int] = {}

    def text(self, name: str, first: int, pages: int, make: PageMaker, *, rasters: Iterable[int] = ()) -> None:
        """A document of `pages` pages with the marks from `first`; pages in `rasters` become pictures at these dpi."""
        held = io.BytesIO()
        canvas = Canvas(held, pagesize=(PAGE_WIDTH, PAGE_HEIGHT), invariant=True)
        for index in range(pages):
            draw = random.Random(first + index)
            page = PageWriter(canvas, first + index, draw)
            make(page, draw, index)
            self.regions[first + index] = page.regions
            self.counts[name] = self.counts.get(name, 0) + sum(r.label != "image" for r in page.regions)
            canvas.showPage()
        canvas.save()
        self._corpus.path(name).write_bytes(_rasterised(held.getvalue(), list(rasters)))


def _rasterised(pdf: bytes, dpis: list[int]) -> bytes:
    """The document with page i as a noisy colour scan at `dpis[i]`; 0 leaves a page, an empty list all of them."""
    if not dpis:
        return pdf
    noise = np.random.default_rng(0)
    with pymupdf.open(stream=pdf) as source, pymupdf.open() as out:
        for page, dpi in zip(source, dpis, strict=True):
            if not dpi:
                out.insert_pdf(source, from_page=page.number, to_page=page.number)
                continue
            pixmap = page.get_pixmap(dpi=dpi, alpha=False)
            pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width, 3)
            grain = noise.normal(-2 * NOISE, NOISE, pixels.shape[:2])[..., None]
            noisy = np.clip(pixels * PAPER + grain, 0, 255).astype(np.uint8)
            jpeg = simplejpeg.encode_jpeg(noisy, quality=JPEG_QUALITY, colorspace="RGB", colorsubsampling="420")
            out.new_page(width=PAGE_WIDTH, height=PAGE_HEIGHT).insert_image(page.rect, stream=jpeg)
        data: bytes = out.tobytes()
        return data


def make_corpus(root: Path = CACHE) -> Corpus:
    """The corpus, made on first use; a change of these modules makes a new one."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    corpus = Corpus(root / version)
    if corpus.manifest.exists():
        return corpus
    corpus.directory.mkdir(parents=True, exist_ok=True)
    maker = _Maker(corpus)
    maker.text("agreement", 0, AGREEMENT_PAGES, agreement_page)
    maker.text("long", 0, LONG_PAGES, agreement_page)
    maker.text("sixteen", 0, 16, agreement_page)
    maker.text("scans", SCANS_FROM, 40, agreement_page, rasters=[200, 300] * 20)
    maker.text("mixed", MIXED_FROM, 20, mixed_page, rasters=[0, 0, 0, 200] * 5)
    maker.text("warm-up", WARM_UP_FROM, SHORT_PAGES, agreement_page)
    for i, path in enumerate(corpus.short):
        maker.text(path.stem, SHORT_FROM + i * SHORT_PAGES, SHORT_PAGES, agreement_page)
    regions = {number: [asdict(region) for region in found] for number, found in maker.regions.items()}
    (corpus.directory / "counts.json").write_text(json.dumps(maker.counts))
    corpus.manifest.write_text(json.dumps(regions))
    return corpus
