"""What became of a page: its ledger entry, what belongs to it, and what can be said about it afterwards."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from handler.recognition.prompts import FIGURES
from handler.recognition.reading import set_aside
from handler.recognition.verdict import INK_FLOOR
from handler.schema import PageResult, PageStatus, Reason, RegionResult, RegionStatus, Usage

BLANK_INK = INK_FLOOR
"""Below this share of ink a page counts as free of it: about 800 of 3.9 million pixels of an A4 page at 200 dpi."""
LOW_YIELD_CHARACTERS_PER_INK = 4000
"""A page of body text carries 5 % ink and 2000 to 4000 characters, so 40000 to 80000 per whole page of ink; a page
read sideways yields a few percent of that."""
_PASSING_TROUBLE = frozenset(
    {
        Reason.ENGINE_ERROR,
        Reason.ENGINE_TIMEOUT,
        Reason.ABORTED,
        Reason.RENDER_TIMEOUT,
        Reason.RENDER_MEMORY,
        Reason.OTHER,
    }
)


@dataclass(frozen=True, slots=True)
class Figure:
    """The picture of one figure region."""

    name: str
    page: int
    region: int
    jpeg: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PageOutcome:
    """A page's ledger entry and what belongs to it."""

    result: PageResult
    usage: Usage = field(default_factory=Usage)
    figures: tuple[Figure, ...] = ()


def chosen_position(best: PageOutcome, readings: Sequence[PageOutcome]) -> PageOutcome:
    """The best of a page's readings in several positions, with what all of them cost and the others said."""
    kept = "\n".join(_texts(best.result))
    others = [text for reading in readings if reading is not best for text in _texts(reading.result)]
    result = best.result.model_copy(update={"superseded": set_aside(kept, others)})
    return replace(best, result=result, usage=sum_usages(reading.usage for reading in readings))


def _texts(page: PageResult) -> list[str]:
    return [text for region in page.regions for text in (region.text, *region.superseded)]


def failed_page(page: int, reason: Reason, message: str) -> PageOutcome:
    """The entry of a page that could not be read."""
    return PageOutcome(PageResult(page=page, status=PageStatus.FAILED, reason=reason, message=message))


def may_fare_better(page: PageResult) -> bool:
    """Whether another attempt may read more: something failed for a reason that lies outside the page."""
    return page.reason in _PASSING_TROUBLE or any(region.reason in _PASSING_TROUBLE for region in page.regions)


def figure_name(page: int, region: int) -> str:
    """The artifact's name of a figure region: the path by which the Markdown links it."""
    return f"figures/page-{page:04d}-figure-{region:03d}.jpg"


def characters_of(page: PageResult) -> int:
    """Letters and digits in regions that were read."""
    read = "".join(region.text for region in page.regions if region.status is not RegionStatus.SKIPPED)
    return sum(count for character, count in Counter(read).items() if character.isalnum())


def yields_little(page: PageResult) -> bool:
    """A page with ink and next to no text: it may lie on its side. Ink of figures is not expected to yield."""
    if page.ink is None or page.ink < BLANK_INK:
        return False
    if any(region.reason in _PASSING_TROUBLE | {Reason.ENGINE_REFUSED} for region in page.regions):
        return False
    area = sum(_area(region) for region in page.regions if region.label not in FIGURES)
    figures = sum(_area(region) for region in page.regions if region.label in FIGURES)
    textual = page.ink * area / (area + figures) if area + figures else page.ink
    return characters_of(page) <= textual * LOW_YIELD_CHARACTERS_PER_INK


def _area(region: RegionResult) -> int:
    x0, y0, x1, y1 = region.bbox_px
    return (x1 - x0) * (y1 - y0)


def sum_usages(usages: Iterable[Usage]) -> Usage:
    """The sum."""
    total = dict.fromkeys(Usage.model_fields, 0)
    for usage in usages:
        for name in total:
            total[name] += getattr(usage, name)
    return Usage(**total)
