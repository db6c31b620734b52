"""One page, from its number to its ledger entry. Nothing that goes wrong here leaves the page without one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace

from handler.documents.failures import RenderFailure
from handler.documents.page import Cut, CutRequest, PageImage, Renderer, StagedDocument
from handler.errors import WorkerError
from handler.layout.runner import LayoutRunner
from handler.ledger import page_status
from handler.page_budget import PageBudget, Reservation
from handler.page_outcome import (
    BLANK_INK,
    Figure,
    PageOutcome,
    characters_of,
    chosen_position,
    failed_page,
    figure_name,
    yields_little,
)
from handler.page_plan import PlannedRegion, Planner
from handler.recognition.reader import Reader
from handler.recognition.reading import Reading
from handler.recognition.remembering import KnownAnswers
from handler.schema import (
    PageResult,
    PageWarning,
    Reason,
    RegionOrigin,
    RegionResult,
    RegionStatus,
    Usage,
)
from handler.stages import Stage, Stages

log = logging.getLogger(__name__)

TURNS = (90, 270, 180)
FEWEST_CHARACTERS = 50
"""A turned page with fewer letters and digits is no better read: pictures yield some in any position."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a job asks of its pages."""

    dpi: int = 200
    ceiling: int | None = None
    read_figures: bool = False
    cut_figures: bool = False


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A page cut into pictures; its pixels are gone."""

    image: PageImage
    regions: tuple[PlannedRegion, ...]
    cuts: tuple[Cut, ...]
    coverage: float | None
    warnings: tuple[PageWarning, ...]
    figures: dict[int, bytes] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(len(crop.jpeg) for cut in self.cuts for crop in cut.crops)


@dataclass(frozen=True)
class PageReader:
    """Reads single pages. Shared by all jobs of the process."""

    renderer: Renderer
    layout: LayoutRunner
    reader: Reader
    budget: PageBudget

    def remembering(self, answers: KnownAnswers) -> "PageReader":
        """The same reader, which asks the engine for nothing that `answers` knows."""
        return replace(self, reader=self.reader.remembering(answers))

    async def read(self, document: StagedDocument, page: int, options: ReadOptions, stages: Stages) -> PageOutcome:
        """Read one page. Raises only what concerns the whole job (`WorkerError`) and cancellation."""
        task = _PageTask(self, document, page, options, stages)
        try:
            return await task.run()
        except RenderFailure as failure:
            return failed_page(page, failure.reason, failure.message)


@dataclass(frozen=True)
class _PageTask:
    """The reading of one page of one document."""

    tools: PageReader
    document: StagedDocument
    page: int
    options: ReadOptions
    stages: Stages

    async def run(self) -> PageOutcome:
        outcome = await self._read(angle=0)
        if not yields_little(outcome.result):
            return outcome
        best = outcome
        readings = [outcome]
        for angle in TURNS:
            turned = await self._read_turned(angle)
            readings.append(turned)
            if characters_of(turned.result) > max(FEWEST_CHARACTERS, 2 * characters_of(best.result)):
                best = turned
        return chosen_position(best, readings)

    async def _read_turned(self, angle: int) -> PageOutcome:
        try:
            return await self._read(angle)
        except RenderFailure as failure:
            return failed_page(self.page, failure.reason, failure.message)

    async def _read(self, angle: int) -> PageOutcome:
        estimate = _page_bytes(self.options.dpi)
        async with self.tools.budget.reserve(str(self.document.path), estimate) as reservation:
            prepared = await self._prepare(angle, reservation)
            reservation.resize(prepared.nbytes)
            with self.stages.measure(Stage.RECOGNISE):
                readings = await self._recognise(prepared, reservation)
        return self._outcome(prepared, readings)

    @property
    def _planner(self) -> Planner:
        return Planner(self.tools.renderer, self.tools.layout)

    async def _prepare(self, angle: int, reservation: Reservation) -> _Prepared:
        renderer = self.tools.renderer
        with self.stages.measure(Stage.RENDER):
            image = await renderer.render(self.document, self.page, self.options.dpi, angle)
        try:
            reservation.resize(image.nbytes)
            plan = await self._planner.plan(image, self.stages)
            cuts = await self._planner.cut(image, plan, self.stages)
            figures: dict[int, bytes] = {}
            warnings = plan.warnings
            if self.options.cut_figures:
                figures, more = await self._planner.cut_figures(image, plan.regions)
                warnings += more
            return _Prepared(image, plan.regions, tuple(cuts), plan.coverage, warnings, figures)
        finally:
            renderer.release(image)

    async def _recognise(self, prepared: _Prepared, reservation: Reservation) -> list[Reading]:
        reads = [
            self.tools.reader.read(
                region.label,
                cut,
                self._recut(prepared.image.angle, region, reservation),
                ceiling=self.options.ceiling,
                read_figures=self.options.read_figures,
                suspected=region.origin is RegionOrigin.RECOVERED,
            )
            for region, cut in zip(prepared.regions, prepared.cuts, strict=True)
        ]
        return await _settled(reads)

    def _recut(self, angle: int, region: PlannedRegion, reservation: Reservation) -> Callable[[], Awaitable[Cut]]:
        """The changed crop of a region. The page is rendered again: few regions need it, and late.

        It grows the page's own reservation, which never waits: pages waiting for each other's bytes would hang.
        """

        async def recut() -> Cut:
            renderer = self.tools.renderer
            image = await renderer.render(self.document, self.page, self.options.dpi, angle)
            reservation.resize(reservation.nbytes + image.nbytes)
            try:
                cuts = await renderer.cut(image, [CutRequest(region.box, region.label, variant=1)])
            finally:
                renderer.release(image)
                reservation.resize(reservation.nbytes - image.nbytes)
            return cuts[0]

        return recut

    def _outcome(self, prepared: _Prepared, readings: list[Reading]) -> PageOutcome:
        image = prepared.image
        regions = tuple(
            self._region(index, planned, reading, image, index in prepared.figures)
            for index, (planned, reading) in enumerate(zip(prepared.regions, readings, strict=True))
        )
        status, reason, message = page_status(regions, blank=image.ink < BLANK_INK)
        warnings = image.warnings + prepared.warnings
        if image.angle:
            turned = PageWarning(reason=Reason.PAGE_TURNED, message=f"read after turning it by {image.angle} degrees")
            warnings += (turned,)
        result = PageResult(
            page=self.page,
            status=status,
            reason=reason,
            message=message,
            width=image.width,
            height=image.height,
            dpi=image.dpi,
            angle=image.angle,
            ink=round(image.ink, 5),
            coverage=None if prepared.coverage is None else round(prepared.coverage, 4),
            regions=regions,
            warnings=warnings,
        )
        figures = tuple(
            Figure(figure_name(self.page, index), self.page, index, jpeg) for index, jpeg in prepared.figures.items()
        )
        return PageOutcome(result, _usage(readings), figures)

    def _region(
        self, index: int, planned: PlannedRegion, reading: Reading, image: PageImage, has_figure: bool
    ) -> RegionResult:
        return RegionResult(
            index=index,
            label=planned.label,
            bbox=planned.box.normalised(image.width, image.height),
            bbox_px=planned.box.as_bbox(),
            text=reading.text,
            superseded=reading.superseded,
            status=reading.status,
            finish_reason=reading.finish_reason,
            reason=reading.reason,
            message=reading.message,
            origin=planned.origin,
            score=None if planned.score is None else round(planned.score, 4),
            requests=reading.requests,
            figure=figure_name(self.page, index) if has_figure else None,
        )


async def _settled(reads: Sequence[Coroutine[None, None, Reading]]) -> list[Reading]:
    """What all read, in their order. What concerns the whole job ends the others and is raised."""
    tasks = [asyncio.create_task(read) for read in reads]
    pending = set(tasks)
    try:
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                _raise_for_job(task)
    finally:
        for task in pending:
            task.cancel()
        # All, since an engine that is gone fails several at once: asyncio logs each error that nobody asked for.
        await asyncio.gather(*tasks, return_exceptions=True)
    return [_reading_of(task) for task in tasks]


def _raise_for_job(task: asyncio.Task[Reading]) -> None:
    error = task.exception()
    if isinstance(error, WorkerError) or not isinstance(error, Exception | None):
        raise error


def _reading_of(task: asyncio.Task[Reading]) -> Reading:
    """An unforeseen error of one region stays with that region: what its neighbours said is kept."""
    error = task.exception()
    if error is None:
        return task.result()
    log.error("a region failed", exc_info=error)
    return Reading("", RegionStatus.FAILED, reason=Reason.OTHER, message=f"unforeseen: {type(error).__name__}")


def _page_bytes(dpi: int) -> int:
    """Bytes of an A4 page (8.27 x 11.69 inches) at `dpi`, 3 per pixel: what a page costs before it is known."""
    return int(8.27 * dpi) * int(11.69 * dpi) * 3


def _usage(readings: list[Reading]) -> Usage:
    return Usage(
        requests=sum(reading.requests for reading in readings),
        retries=sum(max(0, reading.requests - 1) for reading in readings),
        prompt_tokens=sum(reading.prompt_tokens for reading in readings),
        completion_tokens=sum(reading.completion_tokens for reading in readings),
    )
