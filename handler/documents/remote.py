"""What the worker asks of a render process, and how a render process is set up.

The functions import their parts when called: the worker sends them by name and never loads a PDF engine itself.
"""

import resource
import warnings
from collections.abc import Sequence
from pathlib import Path

from handler.documents.page import Coverage, Cut, CutRequest, OpenedDocument, PageImage, StagedDocument, Survey
from handler.documents.work import Drawn, PageJob, PdfEngine
from handler.geometry import PixelBox
from handler.schema import Label
from handler.supervisor import die_with_parent

PRELOADED = (
    "pebble",
    "handler.documents.remote",
    "handler.documents.drawing",
    "handler.documents.rulings",
    "handler.documents.crops",
    "handler.documents.preloading",
)
"""Imported once in the fork server; every render process starts with them in place."""

_PAGE_BYTES = resource.getpagesize()


def set_up(memory_bytes: int) -> None:
    """Once per render process: a memory cap above what is mapped already, one thread, and no life after the worker.

    Python's warnings are turned off: what libraries say about a caller's picture belongs in no log of ours.
    """
    import cv2

    cv2.setNumThreads(1)
    warnings.simplefilter("ignore")
    die_with_parent()
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * _PAGE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (mapped + memory_bytes, mapped + memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def ready() -> None:
    """Answer once the process is up."""


def open_document(document: StagedDocument, engine: PdfEngine) -> OpenedDocument:
    """See `Renderer.open`."""
    from handler.documents import drawing

    return drawing.open_document(document, engine)


def pages_with_tables(document: StagedDocument) -> frozenset[int]:
    """See `OpenedDocument.tables`."""
    from handler.documents import rulings

    return rulings.pages_with_tables(document.path, document.password)


def draw_page(job: PageJob) -> Drawn:
    """See `Renderer.render`."""
    from handler.documents import drawing

    return drawing.draw_page(job)


def survey(image: PageImage, requests: Sequence[CutRequest]) -> Survey:
    """See `Renderer.survey`."""
    coverage = find_missed(image, [request.box for request in requests])
    missed = [CutRequest(box.clamped(image.width, image.height), Label.TEXT) for box in coverage.missed]
    cuts = cut_regions(image, [*requests, *missed])
    return Survey(coverage, tuple(cuts[: len(requests)]), tuple(cuts[len(requests) :]))


def cut_regions(image: PageImage, requests: Sequence[CutRequest]) -> list[Cut]:
    """See `Renderer.cut`."""
    from handler.documents import crops
    from handler.documents.buffers import mapped_pixels

    with mapped_pixels(image.handle, image.width, image.height, image.channels) as page:
        return [crops.cut(page, request) for request in requests]


def find_missed(image: PageImage, boxes: Sequence[PixelBox]) -> Coverage:
    """See `Renderer.coverage`."""
    from handler.documents import ink
    from handler.documents.buffers import mapped_mask

    with mapped_mask(image.handle, image.width, image.height) as mask:
        return ink.coverage(mask, boxes, image.width, image.height)


def cut_figure(image: PageImage, box: PixelBox) -> bytes:
    """See `Renderer.figure`."""
    from handler.documents import crops
    from handler.documents.buffers import mapped_pixels

    with mapped_pixels(image.handle, image.width, image.height, image.channels) as page:
        return crops.figure(page, box)
