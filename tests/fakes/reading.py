"""A planned document read by the real pages, jobs and ledger."""

import asyncio
import base64
from typing import Any

from handler.checkpoint import Checkpoints
from handler.jobs import DocumentReader
from handler.layout.runner import LayoutRunner
from handler.page_budget import PageBudget
from handler.pages import PageReader
from handler.progress import ProgressMeter
from handler.recognition.asking import Asker, Patience
from handler.recognition.reader import Reader, ReadingPolicy
from handler.recognition.slots import RegionSlots
from handler.schema import JobInput, JobOutput, ProducedBy
from handler.settings import Settings
from handler.stages import Stages
from tests.fakes.engine import Clock
from tests.fakes.world import World, WorldDetector, WorldRenderer

PDF = base64.b64encode(b"%PDF-1.7\nonly its first bytes are looked at").decode()


async def read(
    world: World, *, settings: Settings | None = None, at_once: int = 8, patience_s: float = 3, **options: Any
) -> JobOutput:
    """`at_once`: regions in the engine."""
    engine, clock, slots = world.engine(), Clock(), RegionSlots(fixed=at_once)
    asker = Asker(engine, slots, Patience(deadline_s=patience_s), clock=clock, sleep=clock.sleep)
    layout = LayoutRunner(WorldDetector(world))
    reader = Reader(engine, ReadingPolicy(ceiling=4096), slots, asker=asker)
    pages = PageReader(WorldRenderer(world), layout, reader, PageBudget(50_000_000))
    documents = DocumentReader(
        pages,
        Checkpoints(None, "test"),
        settings or Settings(),
        ProducedBy(worker="0", engine="fake", layout="planned"),
    )
    job = JobInput(file_base64=PDF, **options)
    try:
        outcome = await documents.read(job, "job", ProgressMeter(), Stages())
    finally:
        layout.close()
    return outcome.output


def read_all(world: World, **options: Any) -> JobOutput:
    return asyncio.run(read(world, **options))
