import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.ledger import counts_of, degraded_of, page_status, status_of
from handler.schema import (
    DEGRADED_ITEMS_LIMIT,
    DocumentStatus,
    Label,
    PageResult,
    PageStatus,
    PageWarning,
    Reason,
    RegionOrigin,
    RegionResult,
)
from tests.fakes.results import failed, page, region, skipped, truncated

QUARANTINED = skipped("invented", Reason.TEXT_WITHOUT_INK)
REPETITIVE = region("again " * 99, reason=Reason.REPETITION, message="99 times")


@pytest.mark.parametrize(
    ("regions", "blank", "status", "reason"),
    [
        ([region()], False, PageStatus.OK, None),
        ([region(), skipped(), REPETITIVE, QUARANTINED], False, PageStatus.OK, None),
        ([skipped()], False, PageStatus.OK, None),
        ([region(), truncated()], False, PageStatus.PARTIAL, Reason.TOKEN_LIMIT),
        ([region(), truncated(), failed()], False, PageStatus.PARTIAL, Reason.ENGINE_ERROR),
        ([truncated()], False, PageStatus.PARTIAL, Reason.TOKEN_LIMIT),
        ([failed(Reason.ENGINE_REFUSED), failed()], False, PageStatus.FAILED, Reason.ENGINE_REFUSED),
        ([failed(), skipped()], False, PageStatus.FAILED, Reason.ENGINE_ERROR),
        ([], False, PageStatus.FAILED, Reason.NO_LAYOUT),
        ([], True, PageStatus.BLANK, None),
        ([region("")], True, PageStatus.BLANK, None),
        ([QUARANTINED], True, PageStatus.BLANK, None),
        ([region("7")], True, PageStatus.OK, None),
    ],
)
def test_a_page_is_what_its_regions_are(
    regions: list[RegionResult], blank: bool, status: PageStatus, reason: Reason | None
) -> None:
    found, why, message = page_status(regions, blank=blank)
    assert (found, why) == (status, reason)
    assert (message is None) == (reason is None)


@pytest.mark.parametrize(
    ("pages", "status"),
    [
        ([page(region())], DocumentStatus.COMPLETE),
        ([page(region(), skipped(), QUARANTINED, REPETITIVE)], DocumentStatus.COMPLETE),
        ([page(region()), page(status=PageStatus.BLANK)], DocumentStatus.COMPLETE),
        ([page(status=PageStatus.BLANK)], DocumentStatus.COMPLETE),
        ([page(region()), page(status=PageStatus.FAILED, reason=Reason.RENDER_FAILED)], DocumentStatus.PARTIAL),
        ([page(region(), truncated(), status=PageStatus.PARTIAL)], DocumentStatus.PARTIAL),
        ([page(region(), failed())], DocumentStatus.PARTIAL),
        ([page(region(), status=PageStatus.PARTIAL, reason=Reason.LOW_COVERAGE)], DocumentStatus.PARTIAL),
        ([page(status=PageStatus.FAILED), page(status=PageStatus.FAILED)], DocumentStatus.FAILED),
        ([], DocumentStatus.FAILED),
    ],
)
def test_a_document_is_complete_only_if_nothing_was_lost(pages: list[PageResult], status: DocumentStatus) -> None:
    assert status_of(pages) is status


def test_counts_name_every_kind() -> None:
    pages = [
        page(region("four"), region("", Label.IMAGE), REPETITIVE, region("r", origin=RegionOrigin.RECOVERED)),
        page(truncated("ha"), failed(), skipped(), QUARANTINED, status=PageStatus.PARTIAL),
        page(status=PageStatus.BLANK),
        page(status=PageStatus.FAILED),
    ]
    counts = counts_of(pages)
    assert counts.pages.model_dump() == {"requested": 4, "ok": 1, "blank": 1, "partial": 1, "failed": 1}
    assert counts.regions.model_dump() == {
        "found": 8,
        "ok": 4,
        "truncated": 1,
        "failed": 1,
        "skipped": 2,
        "recovered": 1,
        "repetitive": 1,
        "quarantined": 1,
    }
    assert counts.characters == len("four") + len(REPETITIVE.text) + len("r") + len("ha")


def test_degraded_names_losses_first_and_each_thing_once() -> None:
    warning = PageWarning(reason=Reason.LAYOUT_FAILED, message="read as one region")
    pages = [
        page(region(), skipped(), REPETITIVE, warnings=(warning,)),
        page(truncated(), QUARANTINED, number=7, status=PageStatus.PARTIAL, reason=Reason.TOKEN_LIMIT),
        page(number=8, status=PageStatus.FAILED, reason=Reason.RENDER_TIMEOUT, message="30 s"),
        page(region(), number=9, status=PageStatus.PARTIAL, reason=Reason.PAGE_DAMAGED, message="warnings"),
        page(number=10, status=PageStatus.BLANK),
    ]
    degraded = degraded_of(pages)
    assert [(item.page, item.region, item.reason) for item in degraded.items] == [
        (7, 0, Reason.TOKEN_LIMIT),
        (8, None, Reason.RENDER_TIMEOUT),
        (9, None, Reason.PAGE_DAMAGED),
        (1, 1, Reason.FIGURE_NOT_READ),
        (1, 2, Reason.REPETITION),
        (1, None, Reason.LAYOUT_FAILED),
        (7, 1, Reason.TEXT_WITHOUT_INK),
    ]
    assert degraded.count == 7


def test_the_count_is_true_where_the_items_are_cut() -> None:
    pages = [page(*[skipped()] * 150, number=n) for n in (1, 2)]
    pages.append(page(failed(), number=3, status=PageStatus.FAILED, reason=Reason.ENGINE_ERROR))
    degraded = degraded_of(pages)
    assert degraded.count == 302
    assert len(degraded.items) == DEGRADED_ITEMS_LIMIT
    assert degraded.items[0].page == 3


regions = st.sampled_from([region(), region(""), truncated(), failed(), skipped(), QUARANTINED, REPETITIVE])


@given(st.lists(st.tuples(st.lists(regions, max_size=5), st.booleans()), max_size=6))
def test_the_ledger_adds_up(documents: list[tuple[list[RegionResult], bool]]) -> None:
    pages = []
    for number, (found, blank) in enumerate(documents, 1):
        status, reason, message = page_status(found, blank=blank)
        pages.append(page(*found, number=number, status=status, reason=reason, message=message))
    counts = counts_of(pages)
    by_page = counts.pages
    assert by_page.requested == by_page.ok + by_page.blank + by_page.partial + by_page.failed == len(pages)
    by_region = counts.regions
    assert by_region.found == by_region.ok + by_region.truncated + by_region.failed + by_region.skipped
    lost = by_page.partial + by_page.failed + by_region.truncated + by_region.failed
    assert (status_of(pages) is DocumentStatus.COMPLETE) == (lost == 0 and bool(pages))
    if lost:
        assert degraded_of(pages).count > 0
