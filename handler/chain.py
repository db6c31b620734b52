"""Everything between a document and its text, made ready in the right order and put away again."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from handler import __version__, fitness
from handler.boot import BootReport
from handler.checkpoint import Checkpoints
from handler.documents.pool import RenderPool
from handler.engine.api import EngineLoad
from handler.engine.client import HttpEngine
from handler.engine.launch import EngineBoot
from handler.engine.monitor import EngineMonitor
from handler.golden.check import golden_document, verify_golden
from handler.layout.detector import Detector
from handler.layout.loading import load_detector
from handler.layout.runner import LayoutRunner
from handler.page_budget import PageBudget
from handler.pages import PageReader, ReadOptions
from handler.patches import registry
from handler.recognition.reader import Reader, ReadingPolicy
from handler.recognition.slots import RegionSlots
from handler.schema import JsonValue, ProducedBy
from handler.settings import Settings
from handler.stages import Stages
from handler.volume import Volume


@dataclass
class Chain:
    """A booted worker without RunPod: what reads pages, and what it is made of."""

    pages: PageReader
    engine: HttpEngine
    slots: RegionSlots
    produced_by: ProducedBy
    settings: Settings
    starting: EngineBoot
    _monitor: EngineMonitor | None = None
    _following: "asyncio.Task[None] | None" = field(default=None, repr=False)

    async def read_golden_page(self) -> None:
        """Read the bundled page through the whole chain. Raises `GateError` when it does not say what it must."""
        outcome = await self.pages.read(golden_document(), 1, ReadOptions(), Stages())
        verify_golden(outcome.result, self.settings.layout)

    def start_following(self, on_gone: Callable[[], None]) -> None:
        """Watch the engine in the running loop, for the slots, `debug` and progress; `on_gone` when it is lost."""
        if self._following is None:
            self._monitor = EngineMonitor(self.engine, observe=self.slots.observe, on_gone=on_gone)
            self._following = asyncio.get_running_loop().create_task(self._follow(self._monitor))

    async def _follow(self, monitor: EngineMonitor) -> None:
        """Until this task is cancelled with the loop; then nobody asks the engine any more."""
        try:
            await monitor.run()
            await asyncio.Event().wait()
        finally:
            await self.engine.aclose()

    def load(self) -> EngineLoad | None:
        """The engine's load at the last sample."""
        return self._monitor.load if self._monitor is not None else None

    def engine_report(self, seconds: float) -> dict[str, JsonValue]:
        """For `debug.engine`; its occupancy is that of the last `seconds`."""
        facts, load = self.engine.facts, self.load()
        report: dict[str, JsonValue] = {
            "name": facts.name,
            "version": facts.version,
            "model": facts.model,
            "context_length": facts.context_length,
            "kv_pool_tokens": facts.kv_pool_tokens,
            "slots": facts.slots,
            "alive": self.engine.alive(),
            "regions_in_flight": self.slots.in_flight,
            "regions_limit": self.slots.limit,
        }
        if load is not None:
            report |= {
                "running": load.running,
                "queued": load.queued,
                "pool_use": load.pool_use,
                "retractions": load.retractions,
            }
        if self._monitor is not None:
            report["occupancy"] = self._monitor.occupancy(time.monotonic() - seconds)
        if not self.engine.alive():
            report |= self.starting.last_words()
        return report

    def checkpoints(self, volume: Volume | None) -> Checkpoints:
        """Checkpoints of this pipeline: a page is only reused by workers that would read it the same way."""
        made_by = (self.produced_by.model_dump_json(), str(self.settings.ocr_max_tokens))
        pipeline = hashlib.sha256("\n".join(made_by).encode()).hexdigest()[:16]
        return Checkpoints(volume.checkpoints if volume else None, pipeline)


@contextmanager
def open_chain(
    settings: Settings, report: BootReport, starting: EngineBoot, load: Callable[[Settings], Detector] = load_detector
) -> Iterator[Chain]:
    """Boot everything but RunPod, while the engine is starting.

    `load` brings the layout model; benchmarks bring one that costs nothing.
    """
    with RenderPool(settings) as renderer:
        with report.step("patches"):
            report.found({"patches": registry.as_json(registry.apply_for(settings))})
        with report.step("layout"):
            detector = load(settings)
        with report.step("engine"):
            engine = starting.wait_ready()
        facts = engine.facts
        with report.step("gates"):
            gates = fitness.engine_gates(facts, settings.engine_model, starting)
            report.found({"start": starting.described(), "gates": fitness.as_json(asyncio.run(fitness.run(gates)))})
        slots = RegionSlots(facts.slots, fixed=settings.regions_in_flight)
        layout = LayoutRunner(detector)
        reader = Reader(engine, ReadingPolicy(ceiling=settings.ocr_max_tokens), slots)
        pages = PageReader(renderer, layout, reader, PageBudget(settings.page_memory_mb * 1_000_000))
        produced_by = ProducedBy(
            worker=__version__,
            engine=facts.name,
            engine_version=facts.version,
            model=facts.model,
            layout=detector.name,
            layout_version=detector.version,
        )
        chain = Chain(pages, engine, slots, produced_by, settings, starting)
        if settings.boot_golden_page:
            with report.step("golden page"):
                asyncio.run(_golden_boot(chain))
        try:
            yield chain
        finally:
            layout.close()


async def _golden_boot(chain: Chain) -> None:
    try:
        await chain.read_golden_page()
    finally:
        await chain.engine.aclose()
