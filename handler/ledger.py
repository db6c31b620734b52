"""The ledger's arithmetic: what became of pages and regions, in statuses and numbers. Pure functions.

A page or document is complete only if nothing was lost. `failed` and `truncated` regions are losses; `skipped`,
quarantined and repetitive ones are not, and stand in `degraded` only. `blank` pages count as read.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from handler.schema import (
    DEGRADED_ITEMS_LIMIT,
    Counts,
    Degraded,
    DegradedItem,
    DocumentStatus,
    PageCounts,
    PageResult,
    PageStatus,
    Reason,
    RegionCounts,
    RegionOrigin,
    RegionResult,
    RegionStatus,
)

LOST = frozenset({RegionStatus.FAILED, RegionStatus.TRUNCATED})
"""Statuses of regions that make their page and document partial."""


def page_status(regions: Sequence[RegionResult], *, blank: bool) -> tuple[PageStatus, Reason | None, str | None]:
    """Status, reason and message of a rendered page. `blank`: the page carries next to no ink."""
    lost = [region for region in regions if region.status in LOST]
    if not lost:
        if blank and not any(region.status is RegionStatus.OK and region.text.strip() for region in regions):
            return PageStatus.BLANK, None, None
        if not regions:
            return PageStatus.FAILED, Reason.NO_LAYOUT, "the page has ink, and nothing on it was read"
        return PageStatus.OK, None, None
    worst = min(lost, key=lambda region: (region.status is not RegionStatus.FAILED, region.index))
    asked = [region for region in regions if region.status is not RegionStatus.SKIPPED]
    if all(region.status is RegionStatus.FAILED and not region.text.strip() for region in asked):
        return PageStatus.FAILED, worst.reason, f"none of {len(asked)} regions could be read: {worst.message}"
    statuses = Counter(region.status for region in lost)
    tally = ", ".join(f"{count} {status.value}" for status, count in sorted(statuses.items()))
    return PageStatus.PARTIAL, worst.reason, f"of {len(regions)} regions {tally}"


def status_of(pages: Sequence[PageResult]) -> DocumentStatus:
    """The document's status."""
    if all(page.status is PageStatus.FAILED for page in pages):
        return DocumentStatus.FAILED
    intact = all(page.status in (PageStatus.OK, PageStatus.BLANK) for page in pages)
    lost = any(region.status in LOST for page in pages for region in page.regions)
    return DocumentStatus.COMPLETE if intact and not lost else DocumentStatus.PARTIAL


def counts_of(pages: Sequence[PageResult]) -> Counts:
    """The ledger in numbers: pages and regions each by status, and what is said about them besides."""
    by_page = Counter(page.status for page in pages)
    regions = [region for page in pages for region in page.regions]
    by_region = Counter(region.status for region in regions)
    by_reason = Counter(region.reason for region in regions)
    return Counts(
        pages=PageCounts(requested=len(pages), **{status.value: by_page[status] for status in PageStatus}),
        regions=RegionCounts(
            found=len(regions),
            recovered=sum(region.origin is RegionOrigin.RECOVERED for region in regions),
            repetitive=by_reason[Reason.REPETITION],
            quarantined=by_reason[Reason.TEXT_WITHOUT_INK],
            **{status.value: by_region[status] for status in RegionStatus},
        ),
        characters=sum(len(region.text) for region in regions if region.status is not RegionStatus.SKIPPED),
    )


def degraded_of(pages: Sequence[PageResult]) -> Degraded:
    """Everything less than perfect, losses first, then by page.

    One item for each failed page, each region with a reason, each warning, and each partial page that none of its
    regions explains.
    """
    items = [item for page in pages for item in _items(page)]
    items.sort(key=lambda item: not item[0])
    return Degraded(count=len(items), items=tuple(item for _, item in items[:DEGRADED_ITEMS_LIMIT]))


def _items(page: PageResult) -> Iterator[tuple[bool, DegradedItem]]:
    """Whether it is a loss, and the item."""
    lost = [region for region in page.regions if region.status in LOST]
    if page.status is PageStatus.FAILED or (page.status is PageStatus.PARTIAL and not lost):
        reason = page.reason or Reason.OTHER
        yield True, DegradedItem(page=page.page, reason=reason, message=page.message or reason.value)
    for region in page.regions:
        if region.status is not RegionStatus.OK or region.reason:
            reason = region.reason or Reason.OTHER
            message = region.message or reason.value
            item = DegradedItem(page=page.page, region=region.index, reason=reason, message=message)
            yield region.status in LOST, item
    for warning in page.warnings:
        yield False, DegradedItem(page=page.page, reason=warning.reason, message=warning.message)
