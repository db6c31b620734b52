"""A whole worker without RunPod and models: real sources, render processes, ledger, delivery and error boundary.

The engine is a function of the picture, the layout one region per page. What is fake is only what needs a GPU.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from handler.bucket import bucket_client
from handler.checkpoint import Checkpoints
from handler.debug import DebugReport, JobLines
from handler.documents.pool import RenderPool
from handler.engine.api import Engine, EngineLoad
from handler.jobs import DocumentReader
from handler.layout.detector import Detector
from handler.layout.runner import LayoutRunner
from handler.layout.whole_page import WholePage
from handler.page_budget import PageBudget
from handler.pages import PageReader
from handler.recognition.reader import Reader, ReadingPolicy
from handler.recognition.slots import RegionSlots
from handler.results.delivery import Deliverer
from handler.results.storage import S3Storage, VolumeStorage
from handler.schema import ErrorInfo, ProducedBy, Progress
from handler.settings import Settings
from handler.volume import Housekeeper, mounted
from handler.worker import Worker


@dataclass(frozen=True)
class Rig:
    """A worker and what it kept of its log."""

    worker: Worker
    pool: RenderPool
    lines: JobLines

    async def ask(self, job: Mapping[str, Any], job_id: str = "job") -> dict[str, Any]:
        """The answer to one job, as the platform would get it."""
        return await self.worker.handle({"id": job_id, "input": job})


def error_of(answer: Mapping[str, Any]) -> ErrorInfo | None:
    """The answer's error, if it is one."""
    return ErrorInfo.model_validate(json.loads(answer["error"])) if "error" in answer else None


@contextmanager
def reading_rig(
    settings: Settings, engine: Engine, *, detector: Detector | None = None, pool: RenderPool | None = None
) -> Iterator[Rig]:
    """Build the worker. A `pool` given is used and left open."""
    if pool is None:
        with RenderPool(settings) as own, reading_rig(settings, engine, detector=detector, pool=own) as rig:
            yield rig
        return
    layout = LayoutRunner(detector or WholePage())
    volume = mounted(settings.runpod_volume_path)
    bucket = bucket_client(settings)
    lines = JobLines()
    logger = logging.getLogger("handler")
    before, logger.handlers, logger.propagate = logger.handlers, [lines], False
    reader = Reader(engine, ReadingPolicy(ceiling=settings.ocr_max_tokens), RegionSlots(engine.facts.slots))
    pages = PageReader(pool, layout, reader, PageBudget(settings.page_memory_mb * 1_000_000))
    checkpoints = Checkpoints(volume.checkpoints if volume else None, "rig")
    made_by = ProducedBy(worker="0", engine="fake", layout=layout.detector.name)
    worker = Worker(
        documents=DocumentReader(pages, checkpoints, settings, made_by),
        deliverer=Deliverer(
            VolumeStorage(volume.results, volume.root) if volume else None,
            S3Storage(bucket, str(settings.bucket_name)) if bucket else None,
        ),
        debug=DebugReport({"settings": dict(settings.public())}, lines, lambda seconds: {"name": "fake"}, _no_load),
        progress_to=lambda event: _swallow,
        golden_page=_no_golden_page,
        housekeeper=Housekeeper(volume, settings),
        declare_unfit=lambda: None,
    )
    lines.boot_done()
    try:
        yield Rig(worker, pool, lines)
    finally:
        layout.close()
        logger.handlers = before


async def _swallow(progress: Progress) -> None:
    """Progress goes nowhere."""


async def _no_golden_page() -> None:
    """There is no model to check."""


def _no_load() -> EngineLoad | None:
    return None
