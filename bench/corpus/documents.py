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
SHORT = tuple(f"short-{i:02}" for i in range(16))
MARKS = {
    "agreement": range(155),
    "long": range(620),
    "sixteen": range(16),
    "scans": range(700, 740),
    "mixed": range(800, 820),
    "warm-up": range(1000, 1003),
} | {name: range(900 + 3 * i, 903 + 3 * i) for i, name in enumerate(SHORT)}
"""The marks of each document's pages. Documents with the same marks begin with the same pages."""
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
        return [self.path(name) for name in SHORT]


class _Maker:
    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.regions: dict[int, list[Region]] = {}
        self.counts: dict[str, int] = {}

    def text(self, name: str, make: PageMaker = agreement_page, *, rasters: Iterable[int] = ()) -> None:
        """A document; its pages become pictures at the dpi in `rasters`."""
        held = io.BytesIO()
        canvas = Canvas(held, pagesize=(PAGE_WIDTH, PAGE_HEIGHT), invariant=True)
        for index, mark in enumerate(MARKS[name]):
            draw = random.Random(mark)
            page = PageWriter(canvas, mark, draw)
            make(page, draw, index)
            self.regions[mark] = page.regions
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
    maker.text("scans", rasters=[200, 300] * 20)
    maker.text("mixed", mixed_page, rasters=[0, 0, 0, 200] * 5)
    for name in ("agreement", "long", "sixteen", "warm-up", *SHORT):
        maker.text(name)
    regions = {number: [asdict(region) for region in found] for number, found in maker.regions.items()}
    (corpus.directory / "counts.json").write_text(json.dumps(maker.counts))
    corpus.manifest.write_text(json.dumps(regions))
    return corpus
