"""One page, from its number to its ledger entry. Nothing that goes wrong here leaves the page without one."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from handler.documents.failures import RenderFailure
from handler.documents.page import Cut, CutRequest, PageImage, Renderer, StagedDocument
from handler.geometry import PixelBox, page_box
from handler.layout.runner import LayoutFailed, LayoutRunner
from handler.ledger import page_status
from handler.page_budget import PageBudget, Reservation
from handler.page_outcome import (
    BLANK_INK,
    FIGURE_LABELS,
    Figure,
    PageOutcome,
    characters_of,
    failed_page,
    figure_name,
    sum_usages,
    yields_little,
)
from handler.recognition.reader import Reader
from handler.recognition.reading import Reading
from handler.schema import (
    Label,
    PageResult,
    PageWarning,
    Reason,
    RegionOrigin,
    RegionResult,
    Usage,
)
from handler.stages import Stage, Stages

TURNS = (90, 270, 180)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a job asks of its pages."""

    dpi: int = 200
    ceiling: int | None = None
    read_figures: bool = False
    cut_figures: bool = False


@dataclass(frozen=True, slots=True)
class _Planned:
    """A region that will be read: where it is and who said so."""

    label: Label
    box: PixelBox
    origin: RegionOrigin
    score: float | None = None


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A page cut into pictures; its pixels are gone."""

    image: PageImage
    regions: tuple[_Planned, ...]
    cuts: tuple[Cut, ...]
    coverage: float
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
        usage = outcome.usage
        for angle in TURNS:
            turned = await self._read_turned(angle)
            usage = sum_usages((usage, turned.usage))
            if characters_of(turned.result) > 2 * characters_of(best.result):
                best = turned
        return replace(best, usage=usage)

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

    async def _prepare(self, angle: int, reservation: Reservation) -> _Prepared:
        renderer = self.tools.renderer
        with self.stages.measure(Stage.RENDER):
            image = await renderer.render(self.document, self.page, self.options.dpi, angle)
        try:
            reservation.resize(image.nbytes)
            regions, warnings = await self._find_regions(image)
            coverage, regions, more = await self._recover(image, regions)
            with self.stages.measure(Stage.CUT):
                cuts = await renderer.cut(image, [CutRequest(region.box, region.label) for region in regions])
            figures = await self._cut_figures(image, regions)
            return _Prepared(image, regions, tuple(cuts), coverage, warnings + more, figures)
        finally:
            renderer.release(image)

    async def _find_regions(self, image: PageImage) -> tuple[tuple[_Planned, ...], tuple[PageWarning, ...]]:
        """What the layout model sees; the whole page when it cannot say."""
        try:
            with self.stages.measure(Stage.LAYOUT):
                detections = await self.tools.layout.detect(self.tools.renderer.pixels(image))
        except LayoutFailed as failure:
            whole = _Planned(Label.TEXT, page_box(image.width, image.height), RegionOrigin.WHOLE_PAGE)
            return (whole,), (PageWarning(reason=Reason.LAYOUT_FAILED, message=f"read as one region: {failure}"),)
        regions = tuple(
            _Planned(d.label, d.box.clamped(image.width, image.height), RegionOrigin.LAYOUT, d.score)
            for d in detections
        )
        return regions, ()

    async def _recover(
        self, image: PageImage, regions: tuple[_Planned, ...]
    ) -> tuple[float, tuple[_Planned, ...], tuple[PageWarning, ...]]:
        """Add the areas with ink that no region covers, so that they are read as well."""
        if image.ink < BLANK_INK:
            return 1.0, regions, ()
        if not regions:
            whole = _Planned(Label.TEXT, page_box(image.width, image.height), RegionOrigin.WHOLE_PAGE)
            message = "the layout model sees nothing on a page with ink; read as one region"
            return 0.0, (whole,), (PageWarning(reason=Reason.NO_LAYOUT, message=message),)
        with self.stages.measure(Stage.COVERAGE):
            coverage = await self.tools.renderer.coverage(image, [region.box for region in regions])
        if not coverage.missed:
            return coverage.covered, regions, ()
        recovered = tuple(
            _Planned(Label.TEXT, box.clamped(image.width, image.height), RegionOrigin.RECOVERED)
            for box in coverage.missed
        )
        message = f"{1 - coverage.covered:.1%} of the ink lies outside the regions; {len(recovered)} areas read as text"
        warning = PageWarning(reason=Reason.INK_OUTSIDE_REGIONS, message=message)
        return coverage.covered, _in_order(regions, recovered), (warning,)

    async def _cut_figures(self, image: PageImage, regions: tuple[_Planned, ...]) -> dict[int, bytes]:
        if not self.options.cut_figures:
            return {}
        wanted = [index for index, region in enumerate(regions) if region.label in FIGURE_LABELS]
        return {index: await self.tools.renderer.figure(image, regions[index].box) for index in wanted}

    async def _recognise(self, prepared: _Prepared, reservation: Reservation) -> list[Reading]:
        reads = [
            self.tools.reader.read(
                region.label,
                cut,
                self._recut(prepared.image.angle, region, reservation),
                ceiling=self.options.ceiling,
                read_figures=self.options.read_figures,
            )
            for region, cut in zip(prepared.regions, prepared.cuts, strict=True)
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(read) for read in reads]
        return [task.result() for task in tasks]

    def _recut(self, angle: int, region: _Planned, reservation: Reservation) -> Callable[[], Awaitable[Cut]]:
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
            coverage=round(prepared.coverage, 4),
            regions=regions,
            warnings=warnings,
        )
        figures = tuple(
            Figure(figure_name(self.page, index), self.page, index, jpeg) for index, jpeg in prepared.figures.items()
        )
        return PageOutcome(result, _usage(readings), figures)

    def _region(
        self, index: int, planned: _Planned, reading: Reading, image: PageImage, has_figure: bool
    ) -> RegionResult:
        return RegionResult(
            index=index,
            label=planned.label,
            bbox=planned.box.normalised(image.width, image.height),
            bbox_px=planned.box.as_bbox(),
            text=reading.text,
            status=reading.status,
            finish_reason=reading.finish_reason,
            reason=reading.reason,
            message=reading.message,
            origin=planned.origin,
            score=None if planned.score is None else round(planned.score, 4),
            requests=reading.requests,
            figure=figure_name(self.page, index) if has_figure else None,
        )


def _page_bytes(dpi: int) -> int:
    """Bytes of an A4 page (8.27 x 11.69 inches) at `dpi`, 3 per pixel: what a page costs before it is known."""
    return int(8.27 * dpi) * int(11.69 * dpi) * 3


def _in_order(regions: tuple[_Planned, ...], recovered: tuple[_Planned, ...]) -> tuple[_Planned, ...]:
    """Each recovered area goes before the first region that starts below it and shares its columns."""
    ordered = list(regions)
    for area in recovered:
        followers = (i for i, region in enumerate(ordered) if _follows(region.box, area.box))
        ordered.insert(next(followers, len(ordered)), area)
    return tuple(ordered)


def _follows(box: PixelBox, area: PixelBox) -> bool:
    return box.y0 >= area.y1 and box.x0 < area.x1 and area.x0 < box.x1


def _usage(readings: list[Reading]) -> Usage:
    return Usage(
        requests=sum(reading.requests for reading in readings),
        retries=sum(max(0, reading.requests - 1) for reading in readings),
        prompt_tokens=sum(reading.prompt_tokens for reading in readings),
        completion_tokens=sum(reading.completion_tokens for reading in readings),
    )
