"""What of a page will be read: the regions that layout finds, the areas with ink that it misses, and their pictures.

A step that fails here costs what it would have brought, with a warning that says so, and never the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from handler.documents.failures import RenderFailure
from handler.documents.page import Coverage, Cut, CutRequest, PageImage, Renderer
from handler.geometry import PixelBox, page_box
from handler.layout.runner import LayoutFailed, LayoutRunner
from handler.page_outcome import BLANK_INK
from handler.recognition.prompts import FIGURES
from handler.schema import Label, PageWarning, Reason, RegionOrigin
from handler.stages import Stage, Stages

CUT_FAILURES = 2
"""After so many regions that could not be cut the rest is given up: each may take as long as the render timeout."""

LOW_COVERAGE = 0.5
"""Below this share of ink inside regions a page is flagged though nothing on it looks like text that was missed."""


@dataclass(frozen=True, slots=True)
class PlannedRegion:
    """A region that will be read: where it is and who said so."""

    label: Label
    box: PixelBox
    origin: RegionOrigin
    score: float | None = None


@dataclass(frozen=True, slots=True)
class PagePlan:
    """The regions in reading order, and how much of the page's ink layout found; None where nobody could say."""

    regions: tuple[PlannedRegion, ...]
    coverage: float | None
    warnings: tuple[PageWarning, ...] = ()
    cuts: tuple[Cut, ...] | None = None
    """The pictures of the regions, where the search for missed ink brought them along."""


@dataclass(frozen=True)
class Planner:
    """Plans pages. Shared by all jobs of the process."""

    renderer: Renderer
    layout: LayoutRunner

    async def plan(self, image: PageImage, stages: Stages) -> PagePlan:
        """The regions of a rendered page, whatever layout and coverage do."""
        try:
            with stages.measure(Stage.LAYOUT):
                detections = await self.layout.detect(self.renderer.pixels(image))
        except LayoutFailed as failure:
            warning = PageWarning(reason=Reason.LAYOUT_FAILED, message=f"read as one region: {failure}")
            return PagePlan((_whole_page(image),), 1.0, (warning,))
        found = tuple(
            PlannedRegion(d.label, d.box.clamped(image.width, image.height), RegionOrigin.LAYOUT, d.score)
            for d in detections
        )
        if image.ink == 0:
            return PagePlan(found, 1.0)
        # A page number alone on its page is less ink than dust, but it lies together.
        nearly_blank = image.ink < BLANK_INK
        if not found and not nearly_blank:
            message = "the layout model sees nothing on a page with ink; read as one region"
            return PagePlan((_whole_page(image),), 0.0, (PageWarning(reason=Reason.NO_LAYOUT, message=message),))
        with stages.measure(Stage.CUT):
            return await self._with_missed(image, found)

    async def _with_missed(self, image: PageImage, found: tuple[PlannedRegion, ...]) -> PagePlan:
        """The regions found, and the areas with ink that none of them covers, to be read as text."""
        try:
            survey = await self.renderer.survey(image, _requests(found))
        except RenderFailure:
            return await self._with_missed_uncut(image, found)
        plan = _extended(image, found, survey.coverage)
        cuts = dict(zip(found, survey.cuts, strict=True))
        cuts |= zip(_recovered(image, survey.coverage), survey.missed, strict=True)
        return replace(plan, cuts=tuple(cuts[region] for region in plan.regions))

    async def _with_missed_uncut(self, image: PageImage, found: tuple[PlannedRegion, ...]) -> PagePlan:
        """Only the ink is looked at: one region that cannot be cut must not hide what others miss."""
        try:
            coverage = await self.renderer.coverage(image, [region.box for region in found])
        except RenderFailure as failure:
            message = f"ink outside the regions was not looked for: {failure.message}"
            return PagePlan(found, None, (PageWarning(reason=failure.reason, message=message),))
        return _extended(image, found, coverage)

    async def cut(self, image: PageImage, plan: PagePlan, stages: Stages) -> Sequence[Cut]:
        """The pictures of the regions; none for a region that cannot be cut, found by cutting one by one."""
        if plan.cuts is not None:
            return plan.cuts
        requests = _requests(plan.regions)
        with stages.measure(Stage.CUT):
            try:
                return await self.renderer.cut(image, requests)
            except RenderFailure:
                return await self._cut_singly(image, requests)

    async def _cut_singly(self, image: PageImage, requests: Sequence[CutRequest]) -> list[Cut]:
        cuts: list[Cut] = []
        failures = 0
        for request in requests:
            try:
                cuts += await self.renderer.cut(image, [request]) if failures < CUT_FAILURES else [_NO_PICTURE]
            except RenderFailure:
                failures += 1
                cuts.append(_NO_PICTURE)
        return cuts

    async def cut_figures(
        self, image: PageImage, regions: Sequence[PlannedRegion]
    ) -> tuple[dict[int, bytes], tuple[PageWarning, ...]]:
        """The pictures of the figures, for people, by the region's position."""
        figures: dict[int, bytes] = {}
        warnings: list[PageWarning] = []
        for index, region in enumerate(regions):
            if region.label not in FIGURES:
                continue
            try:
                figures[index] = await self.renderer.figure(image, region.box)
            except RenderFailure as failure:
                message = f"the picture of region {index} could not be cut: {failure.message}"
                warnings.append(PageWarning(reason=failure.reason, message=message))
        return figures, tuple(warnings)


def _requests(regions: Sequence[PlannedRegion]) -> list[CutRequest]:
    return [CutRequest(region.box, region.label) for region in regions]


def _extended(image: PageImage, found: tuple[PlannedRegion, ...], coverage: Coverage) -> PagePlan:
    """The plan of `found` and of what they miss."""
    if not coverage.missed:
        return PagePlan(found, coverage.covered, () if image.ink < BLANK_INK else _doubt(coverage.covered))
    missed = _recovered(image, coverage)
    message = f"{1 - coverage.covered:.1%} of the ink lies outside the regions; {len(missed)} areas read as text"
    warning = PageWarning(reason=Reason.INK_OUTSIDE_REGIONS, message=message)
    return PagePlan(_in_order(found, missed), coverage.covered, (warning,))


def _recovered(image: PageImage, coverage: Coverage) -> list[PlannedRegion]:
    boxes = (box.clamped(image.width, image.height) for box in coverage.missed)
    return [PlannedRegion(Label.TEXT, box, RegionOrigin.RECOVERED) for box in boxes]


def _doubt(covered: float) -> tuple[PageWarning, ...]:
    if covered >= LOW_COVERAGE:
        return ()
    message = f"{covered:.1%} of the ink lies inside regions; the rest looks like rules, specks or the scan's edge"
    return (PageWarning(reason=Reason.LOW_COVERAGE, message=message),)


_NO_PICTURE = Cut((), ink=1.0)


def _whole_page(image: PageImage) -> PlannedRegion:
    return PlannedRegion(Label.TEXT, page_box(image.width, image.height), RegionOrigin.WHOLE_PAGE)


def _in_order(found: Sequence[PlannedRegion], missed: Sequence[PlannedRegion]) -> tuple[PlannedRegion, ...]:
    """Each missed area goes before the first region that starts below it and shares its columns."""
    ordered = list(found)
    for area in missed:
        followers = (i for i, region in enumerate(ordered) if _follows(region.box, area.box))
        ordered.insert(next(followers, len(ordered)), area)
    return tuple(ordered)


def _follows(box: PixelBox, area: PixelBox) -> bool:
    return box.y0 >= area.y1 and box.x0 < area.x1 and area.x0 < box.x1
