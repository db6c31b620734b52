"""Faults that others met, one test each with the right outcome. The letters are those of the collection they come from:
V seen in stock glmocr, A in GLM-OCR's field, D in documents. Rows about one region's answer stand in the tests of the
reader and the verdict (V5, A2-A4, A14, A23, A24, A27), about Markdown in those of `assembly` (V8, V9), about labels in
those of the prompts (V10, D26), about files in those of `documents`.
"""

from dataclasses import replace

import pytest

from handler.documents.failures import RenderFailure
from handler.documents.page import OpenedDocument, StagedDocument
from handler.errors import EngineUnavailable
from handler.geometry import PixelBox
from handler.page_outcome import BLANK_INK
from handler.schema import DocumentStatus, Label, PageStatus, Reason, RegionOrigin, RegionStatus
from tests.fakes.reading import read_all
from tests.fakes.world import Behaviour, PlannedPage, PlannedRegion, World, WorldRenderer, full_text

TOP = PlannedRegion(Label.TEXT, PixelBox(0, 0, 400, 100), Behaviour.WELL)
BELOW = PlannedRegion(Label.TEXT, PixelBox(0, 110, 400, 200), Behaviour.WELL)
GOOD = PlannedPage((TOP,))


def behaving(behaviour: Behaviour, region: PlannedRegion = TOP) -> PlannedRegion:
    return replace(region, behaviour=behaviour)


def test_v1_an_engine_that_refuses_every_region_fails_the_pages_and_the_document() -> None:
    refused = PlannedPage((behaving(Behaviour.REFUSED), behaving(Behaviour.REFUSED, BELOW)))
    output = read_all(World((refused, refused)))
    assert output.status is DocumentStatus.FAILED
    assert [(page.status, page.reason) for page in output.pages] == [(PageStatus.FAILED, Reason.ENGINE_REFUSED)] * 2
    assert output.counts.regions.failed == 4


def test_v2_layout_that_fails_leaves_the_page_as_one_region_flagged() -> None:
    [page] = read_all(World((PlannedPage(layout_fails=RuntimeError("CUDA out of memory")),))).pages
    [region] = page.regions
    assert (region.origin, region.status) == (RegionOrigin.WHOLE_PAGE, RegionStatus.OK)
    assert [warning.reason for warning in page.warnings] == [Reason.LAYOUT_FAILED]


@pytest.mark.parametrize(
    "box",
    [PixelBox(200, 200, 200, 360), PixelBox(0, 50, 400, 50), PixelBox(390, 590, 500, 700), PixelBox(300, 90, 10, 20)],
    ids=["no width", "no height", "beyond the page", "inside out"],
)
def test_v4_a20_a_degenerate_box_is_clamped_and_read(box: PixelBox) -> None:
    output = read_all(World((PlannedPage((TOP, PlannedRegion(Label.HEADER, box, Behaviour.WELL))),)))
    [page] = output.pages
    assert [region.status for region in page.regions] == [RegionStatus.OK] * 2
    assert output.status is DocumentStatus.COMPLETE


def test_a5_ink_outside_all_boxes_is_read_as_text_and_counted() -> None:
    missed = PlannedRegion(Label.TEXT, PixelBox(50, 300, 350, 400), Behaviour.WELL)
    output = read_all(World((PlannedPage((TOP,), (missed,)),)))
    [page] = output.pages
    assert [region.origin for region in page.regions] == [RegionOrigin.LAYOUT, RegionOrigin.RECOVERED]
    assert (page.coverage, output.counts.regions.recovered) == (0.8, 1)
    assert full_text("page 1 turned 0 text (50, 300, 350, 400)") in (output.markdown or "")


def test_a5_ink_outside_all_boxes_in_which_no_text_is_seen_is_named_and_no_loss() -> None:
    shadow = PlannedRegion(Label.TEXT, PixelBox(0, 300, 20, 600), Behaviour.EMPTY)
    output = read_all(World((PlannedPage((TOP,), (shadow,)),)))
    assert output.status is DocumentStatus.COMPLETE
    assert [(item.region, item.reason) for item in output.degraded.items][:1] == [(1, Reason.EMPTY_ANSWER)]


def test_a5_a_page_whose_ink_lies_elsewhere_is_flagged_though_it_looks_like_no_text() -> None:
    [page] = read_all(World((replace(GOOD, covered=0.3),))).pages
    assert (page.status, page.coverage) == (PageStatus.OK, 0.3)
    assert [warning.reason for warning in page.warnings] == [Reason.LOW_COVERAGE]


def test_a7_d31_a_page_that_always_times_out_is_named_and_leaves_the_others_alone() -> None:
    hanging = PlannedPage((behaving(Behaviour.TIMEOUT),))
    output = read_all(World((GOOD, hanging, GOOD)))
    assert [page.status for page in output.pages] == [PageStatus.OK, PageStatus.FAILED, PageStatus.OK]
    assert output.pages[1].reason is Reason.ENGINE_TIMEOUT
    assert [item.page for item in output.degraded.items] == [2, 2]
    assert output.status is DocumentStatus.PARTIAL


def test_a13_an_empty_answer_on_a_page_with_ink_is_no_success() -> None:
    output = read_all(World((PlannedPage((behaving(Behaviour.EMPTY),)),)))
    assert output.status is DocumentStatus.FAILED
    assert output.pages[0].reason is Reason.EMPTY_ANSWER


def test_a18_both_boxes_of_a_region_name_the_same_place() -> None:
    [page] = read_all(World((PlannedPage((replace(TOP, box=PixelBox(100, 60, 300, 330)),)),))).pages
    assert (page.width, page.height) == (400, 600)
    assert page.regions[0].bbox_px == (100, 60, 300, 330)
    assert page.regions[0].bbox == (250, 100, 750, 550)


def test_a21_a_page_with_ink_and_no_boxes_is_read_as_one_region() -> None:
    [page] = read_all(World((PlannedPage(),))).pages
    assert [(region.origin, region.status) for region in page.regions] == [(RegionOrigin.WHOLE_PAGE, RegionStatus.OK)]
    assert [warning.reason for warning in page.warnings] == [Reason.NO_LAYOUT]


def test_a28_the_evidence_of_both_stages_is_in_the_result() -> None:
    [page] = read_all(World((PlannedPage((behaving(Behaviour.BUSY_ONCE),)),))).pages
    [region] = page.regions
    assert (region.score, region.finish_reason, region.requests) == (0.9, "stop", 2)


@pytest.mark.parametrize("angle", [90, 180, 270])
def test_d21_a_page_that_lies_on_its_side_is_turned_until_it_reads(angle: int) -> None:
    [page] = read_all(World((replace(GOOD, upright=angle),))).pages
    assert (page.status, page.angle) == (PageStatus.OK, angle)
    assert [warning.reason for warning in page.warnings] == [Reason.PAGE_TURNED]


def test_d21_a_page_that_reads_is_not_turned() -> None:
    world = World((GOOD,))
    [page] = read_all(world).pages
    assert page.angle == 0
    assert len(world.said) == 1


def test_d22_text_on_an_empty_page_is_quarantined() -> None:
    output = read_all(World((PlannedPage((replace(TOP, ink=0.0),), ink=0.0),)))
    [page] = output.pages
    assert page.status is PageStatus.BLANK
    assert (page.regions[0].status, page.regions[0].reason) == (RegionStatus.SKIPPED, Reason.TEXT_WITHOUT_INK)
    assert page.regions[0].text
    assert page.regions[0].text not in (output.markdown or "")
    assert (output.status, output.counts.regions.quarantined) == (DocumentStatus.COMPLETE, 1)


def test_d24_a_blank_page_keeps_its_place() -> None:
    output = read_all(World((GOOD, PlannedPage(ink=0.0), GOOD)))
    assert [(page.page, page.status) for page in output.pages] == [
        (1, PageStatus.OK),
        (2, PageStatus.BLANK),
        (3, PageStatus.OK),
    ]
    assert output.status is DocumentStatus.COMPLETE


def test_a_bug_that_one_region_meets_costs_that_region() -> None:
    world = World((PlannedPage((behaving(Behaviour.BUG), BELOW)),))
    [page] = read_all(world).pages
    assert page.status is PageStatus.PARTIAL
    assert (page.regions[0].status, page.regions[0].reason) == (RegionStatus.FAILED, Reason.OTHER)
    assert page.regions[1].text


def test_a_page_number_alone_on_its_page_is_read() -> None:
    number = PlannedRegion(Label.TEXT, PixelBox(190, 560, 210, 575), Behaviour.WELL)
    almost_white = PlannedPage(missed=(number,), ink=BLANK_INK / 4, covered=0.0)
    [page] = read_all(World((almost_white,))).pages
    assert (page.status, len(page.regions)) == (PageStatus.OK, 1)
    assert page.regions[0].text
    [dusty] = read_all(World((replace(almost_white, missed=()),))).pages
    assert (dusty.status, dusty.regions, dusty.warnings) == (PageStatus.BLANK, (), ())


def test_d25_skipped_figures_are_counted_and_read_on_request() -> None:
    chart = replace(TOP, label=Label.CHART)
    plan = (PlannedPage((chart, BELOW)),)
    output = read_all(World(plan))
    assert (output.counts.regions.skipped, output.status) == (1, DocumentStatus.COMPLETE)
    assert [item.reason for item in output.degraded.items] == [Reason.FIGURE_NOT_READ]
    output = read_all(World(plan), read_figures=True)
    assert (output.counts.regions.skipped, output.counts.regions.ok) == (0, 2)


def test_d26_a_header_is_in_the_json_and_in_markdown_on_request() -> None:
    header = replace(TOP, label=Label.HEADER)
    plan = (PlannedPage((header, BELOW)),)
    dropped, kept = read_all(World(plan)), read_all(World(plan), furniture="keep")
    text = dropped.pages[0].regions[0].text
    assert text == kept.pages[0].regions[0].text != ""
    assert text not in (dropped.markdown or "")
    assert text in (kept.markdown or "")


def test_d30_a_recovered_area_comes_where_it_stands_in_its_column() -> None:
    columns = [
        PlannedRegion(Label.TEXT, PixelBox(x, y, x + 180, y + 80), Behaviour.WELL) for x in (0, 210) for y in (0, 300)
    ]
    missed = PlannedRegion(Label.TEXT, PixelBox(0, 150, 180, 230), Behaviour.WELL)
    [page] = read_all(World((PlannedPage(tuple(columns), (missed,)),))).pages
    assert [region.bbox_px[:2] for region in page.regions] == [(0, 0), (0, 150), (0, 300), (210, 0), (210, 300)]


def test_d32_a_page_that_fails_does_not_stop_its_neighbours() -> None:
    bad = PlannedPage(render_fails=RenderFailure(Reason.RENDER_TIMEOUT, "30 s"))
    output = read_all(World((GOOD, bad, GOOD)))
    assert [page.status for page in output.pages] == [PageStatus.OK, PageStatus.FAILED, PageStatus.OK]
    assert output.status is DocumentStatus.PARTIAL


def test_what_was_odd_when_the_file_was_opened_is_in_the_jobs_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def repaired(self: WorldRenderer, document: StagedDocument) -> OpenedDocument:
        return OpenedDocument(1, repaired=True, warnings=("trying to repair broken xref",) * 50)

    monkeypatch.setattr(WorldRenderer, "open", repaired)
    output = read_all(World((GOOD,)))
    assert output.document is not None
    assert output.document.repaired
    assert 0 < caplog.text.count("trying to repair broken xref") < 10


def test_only_the_pages_asked_for_are_read_under_their_own_numbers() -> None:
    world = World((GOOD,) * 6)
    output = read_all(world, pages="2,5-")
    assert [page.page for page in output.pages] == [2, 5, 6]
    assert not world.asked(1)


def test_crops_that_cannot_be_cut_fail_their_regions_and_name_them() -> None:
    failing = PlannedPage((TOP, BELOW), cut_fails=RenderFailure(Reason.RENDER_TIMEOUT, "30 s"))
    [page] = read_all(World((failing,))).pages
    assert [region.reason for region in page.regions] == [Reason.CROP_FAILED] * 2


def test_coverage_that_fails_leaves_the_page_readable_and_says_so() -> None:
    failing = replace(GOOD, coverage_fails=RenderFailure(Reason.RENDER_TIMEOUT, "30 s"))
    [page] = read_all(World((failing,))).pages
    assert (page.status, page.coverage) == (PageStatus.OK, None)
    assert [warning.reason for warning in page.warnings] == [Reason.RENDER_TIMEOUT]


def test_a_rule_or_a_shadow_taken_for_missed_text_does_not_spoil_the_page() -> None:
    shadow = PlannedRegion(Label.TEXT, PixelBox(50, 300, 350, 400), Behaviour.EMPTY)
    output = read_all(World((PlannedPage((TOP,), (shadow,)),)))
    [page] = output.pages
    assert page.status is PageStatus.OK
    assert (page.regions[1].status, page.regions[1].reason) == (RegionStatus.SKIPPED, Reason.EMPTY_ANSWER)
    assert Reason.EMPTY_ANSWER in [item.reason for item in output.degraded.items]


@pytest.mark.parametrize("answers", [0, 1, 4])
def test_an_engine_that_dies_ends_the_job_for_another_worker_and_holds_no_page(answers: int) -> None:
    world = World((PlannedPage((TOP, BELOW)),) * 5, dies_after=answers)
    with pytest.raises(EngineUnavailable):
        read_all(world)
    assert not world.held
