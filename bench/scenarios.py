"""What is measured: which documents, on which simulated GPU, under what conditions."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from bench.corpus.documents import Corpus
from bench.detector import LAYOUT_S
from bench.simulator.scheduler import AMPLE_POOL

SMALL_POOL = 65_536
STOCK_WORKERS = 128
STOCK_WORKERS_SHORT = 64


class Side(StrEnum):
    """Who reads the documents."""

    STOCK = "stock"
    OURS = "ours"
    FIFO = "ours, first in first out"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One comparison. Every side reads the same documents from the same simulated engine, one after the other."""

    name: str
    documents: tuple[str, ...]
    gpu: str = "G2"
    pool: int = AMPLE_POOL
    layout_s: float = LAYOUT_S
    hogged: bool = False
    """Another process keeps one core busy."""
    stock_workers: int = STOCK_WORKERS
    at_once: int = 8
    """Our worker's jobs at once; its default."""
    sides: tuple[Side, ...] = (Side.STOCK, Side.OURS)
    slowed: float = 1.0
    """Slow motion: GPU and layout model take so many times longer, on a machine whose CPUs are taken by others."""

    def paths(self, corpus: Corpus) -> list[Path]:
        """The documents."""
        return [corpus.path(name) for name in self.documents]


def scenarios(corpus: Corpus) -> list[Scenario]:
    """All of them, in the order of the table in docs/performance.md."""
    short = tuple(path.stem for path in corpus.short)
    long = Scenario("155 pages, G2", ("agreement",))
    return [
        replace(long, name="155 pages, G1", gpu="G1"),
        long,
        Scenario("16 x 3 pages, G2", short, stock_workers=STOCK_WORKERS_SHORT),
        Scenario("40 scans, G2", ("scans",)),
        Scenario("20 mixed, G2", ("mixed",)),
        replace(long, name="155 pages, G0", gpu="G0", layout_s=0.0),
        replace(long, name="155 pages, G2, one core hogged", hogged=True),
        replace(long, name="155 pages, G2, KV pool 65536", pool=SMALL_POOL),
        Scenario("16 pages, G2", ("sixteen",), sides=(Side.FIFO, Side.OURS)),
        Scenario("620 pages, G2", ("long",), sides=(Side.OURS,)),
    ]


QUICK = ("16 x 3 pages, G2", "40 scans, G2", "20 mixed, G2", "155 pages, G0", "16 pages, G2")
"""About two minutes with one repeat."""
