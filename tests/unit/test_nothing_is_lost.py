"""The promise: whatever fails, every page and region has its entry, and what the engine said is in it."""

import os
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from handler.documents.failures import RenderFailure
from handler.geometry import PixelBox, page_box
from handler.page_outcome import BLANK_INK
from handler.recognition.verdict import INK_FLOOR
from handler.schema import DocumentStatus, Label, PageResult, PageStatus, Reason, RegionResult, RegionStatus
from handler.settings import Settings
from tests.fakes.reading import read_all
from tests.fakes.world import (
    HEIGHT,
    WIDTH,
    Behaviour,
    PlannedPage,
    PlannedRegion,
    World,
    full_text,
)

thoroughly = settings(max_examples=int(os.environ.get("LEDGER_EXAMPLES", "30")), deadline=None)
LOST = frozenset({RegionStatus.FAILED, RegionStatus.TRUNCATED})


coordinates = st.integers(-50, 650)
boxes = st.builds(PixelBox, coordinates, coordinates, coordinates, coordinates)
regions = st.builds(
    PlannedRegion,
    st.sampled_from([Label.TEXT, Label.TABLE, Label.DISPLAY_FORMULA, Label.IMAGE, Label.HEADER, Label.DOC_TITLE]),
    boxes,
    st.sampled_from(Behaviour),
    st.sampled_from([0.1, 0.1, 0.1, 0.0]),
)
recovered = st.builds(PlannedRegion, st.just(Label.TEXT), boxes, st.sampled_from(Behaviour))
render_failures = st.builds(
    RenderFailure, st.sampled_from([Reason.RENDER_TIMEOUT, Reason.PAGE_DAMAGED]), st.just("why")
)
pages = st.builds(
    PlannedPage,
    found=st.lists(regions, max_size=4).map(tuple),
    missed=st.lists(recovered, max_size=2).map(tuple),
    whole=st.sampled_from(Behaviour),
    ink=st.sampled_from([0.05, 0.01, 0.0001, 0.0]),
    upright=st.sampled_from([0, 0, 0, 90]),
    render_fails=st.one_of(st.none(), st.none(), st.none(), render_failures, st.builds(ValueError, st.just("a bug"))),
    layout_fails=st.one_of(st.none(), st.none(), st.none(), st.builds(RuntimeError, st.just("CUDA out of memory"))),
    coverage_fails=st.one_of(st.none(), st.none(), st.none(), render_failures),
    cut_fails=st.one_of(st.none(), st.none(), st.none(), render_failures),
)


def is_unambiguous(page: PlannedPage) -> bool:
    """No two regions share label and box: the engine could not tell them apart, nor could this test."""
    places = [(region.label, region.box.clamped(WIDTH, HEIGHT)) for region in (*page.found, *page.missed)]
    return len(set(places)) == len(places)


worlds = st.lists(pages.filter(is_unambiguous), min_size=1, max_size=5).map(lambda planned: World(tuple(planned)))


@given(worlds)
@thoroughly
def test_every_page_asked_for_has_its_entry(world: World) -> None:
    output = read_all(world)
    assert [page.page for page in output.pages] == list(range(1, len(world.pages) + 1))
    for plan, page in zip(world.pages, output.pages, strict=True):
        if plan.render_fails:
            assert page.status is PageStatus.FAILED
            assert page.reason in (Reason.OTHER, getattr(plan.render_fails, "reason", None))
        if page.status in (PageStatus.FAILED, PageStatus.PARTIAL):
            assert page.reason is not None
    assert not world.held


@given(worlds)
@thoroughly
def test_every_region_found_and_every_area_recovered_has_its_status(world: World) -> None:
    output = read_all(world)
    for plan, page in zip(world.pages, output.pages, strict=True):
        if plan.render_fails:
            continue
        assert len(page.regions) == expected_regions(plan)
        assert [region.index for region in page.regions] == list(range(len(page.regions)))
        for region in page.regions:
            x0, y0, x1, y1 = region.bbox_px
            assert 0 <= x0 < x1 <= page.width
            assert 0 <= y0 < y1 <= page.height
            assert (region.status is RegionStatus.OK) or region.reason


@given(worlds)
@thoroughly
def test_every_character_the_engine_sent_is_in_the_result(world: World) -> None:
    output = read_all(world)
    for page in output.pages:
        kept = [text for region in page.regions for text in (region.text, *region.superseded)]
        for name in world.asked(page.page):
            for text in world.said[name]:
                assert any(text in one for one in (*kept, *page.superseded))
        for region in page.regions:
            assert region.text in (world.said.get(name_of(page, region)) or [""])


@given(worlds)
@thoroughly
def test_ok_means_all_of_it(world: World) -> None:
    output = read_all(world)
    for plan, page in zip(world.pages, output.pages, strict=True):
        whole = PlannedRegion(Label.TEXT, page_box(WIDTH, HEIGHT), plan.whole, plan.ink)
        planned = (*plan.found, *plan.missed, whole)
        paper = {r.box.clamped(WIDTH, HEIGHT).as_bbox() for r in planned if r.ink < INK_FLOOR}
        for region in page.regions:
            if region.status is RegionStatus.OK and region.bbox_px not in paper:
                assert region.text == full_text(name_of(page, region))


@given(worlds)
@thoroughly
def test_the_document_is_complete_only_if_nothing_was_lost(world: World) -> None:
    output = read_all(world, furniture="keep")
    lost = any(page.status in (PageStatus.FAILED, PageStatus.PARTIAL) for page in output.pages)
    lost |= any(region.status in LOST for page in output.pages for region in page.regions)
    assert (output.status is DocumentStatus.COMPLETE) == (not lost)
    counts = output.counts
    assert counts.pages.requested == len(world.pages)
    assert counts.regions.found == sum(len(page.regions) for page in output.pages)
    assert counts.regions.skipped >= counts.regions.quarantined
    if lost:
        assert output.degraded.count
        assert output.markdown is not None
        assert "<!--" in output.markdown


@given(worlds, st.integers(1, 9), st.integers(1, 9), st.integers(0, 1000))
@thoroughly
def test_the_output_is_the_same_whatever_is_read_at_once(
    world: World, pages_at_once: int, regions_at_once: int, seed: int
) -> None:
    def outcome(pages: int, regions: int, mood: int) -> dict[str, object]:
        own = World(world.pages, mood=random.Random(mood))
        settings = Settings(glmocr_pipeline_max_workers=pages)
        output = read_all(own, settings=settings, at_once=regions, patience_s=1000)
        # How often a busy engine is asked depends on its mood, not on us; what came of it may not.
        for page in (values := output.model_dump(exclude={"usage", "debug"}))["pages"]:
            for region in page["regions"]:
                del region["requests"]
        return values

    assert outcome(pages_at_once, regions_at_once, seed) == outcome(1, 1, 0)


def expected_regions(plan: PlannedPage) -> int:
    if plan.layout_fails:
        return 1
    if plan.ink == 0:
        return len(plan.found)
    if not plan.found and plan.ink >= BLANK_INK:
        return 1
    return len(plan.found) + (0 if plan.coverage_fails or covers_all(plan) else len(plan.missed))


def covers_all(plan: PlannedPage) -> bool:
    return any(region.box.clamped(WIDTH, HEIGHT) == page_box(WIDTH, HEIGHT) for region in plan.found)


def name_of(page: PageResult, region: RegionResult) -> str:
    return f"page {page.page} turned {page.angle} {region.label} {region.bbox_px}"
