"""Regions to Markdown. Only the Markdown is formatted: the text of the regions stays what the engine said.

What could not be read leaves an HTML comment in its place, so that a reader of the Markdown sees the hole.
"""

from collections.abc import Iterator, Sequence

from handler.assembly.blocks import comment, formula, heading, prose, table
from handler.ledger import LOST
from handler.schema import Furniture, Label, PageResult, PageStatus, Reason, RegionResult, RegionStatus

FURNITURE = frozenset({Label.HEADER, Label.FOOTER, Label.NUMBER, Label.HEADER_IMAGE, Label.FOOTER_IMAGE})
"""What repeats from page to page; Markdown keeps or drops it."""

_FORMULAS = frozenset({Label.DISPLAY_FORMULA, Label.INLINE_FORMULA})
_QUARANTINE = frozenset({Reason.TEXT_WITHOUT_INK})
_CONTAINED = 0.9
"""A list of references is not written a second time when the entries inside it hold this share of its characters."""
_INSIDE = 0.5
"""Share of an entry's area inside the list from which it belongs to it."""


def markdown(pages: Sequence[PageResult], *, furniture: Furniture) -> str:
    """The document, pages in the order given, blocks a blank line apart."""
    blocks = [block for page in pages for block in _page_blocks(page, furniture)]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _page_blocks(page: PageResult, furniture: Furniture) -> Iterator[str]:
    if page.status is PageStatus.FAILED:
        yield comment(f"page {page.page}: not read", page.reason, page.message)
    regions = [region for region in page.regions if _belongs(region, page.regions, furniture)]
    tags = _formula_tags(regions)
    tagging = set(tags.values())
    for position, region in enumerate(regions):
        if position in tagging:
            continue
        number = regions[tags[position]].text if position in tags else None
        yield from _region_blocks(page.page, region, number)


def _belongs(region: RegionResult, regions: Sequence[RegionResult], furniture: Furniture) -> bool:
    """Whether the region stands in the Markdown at all."""
    if region.label in FURNITURE and furniture is Furniture.DROP:
        return False
    if region.label is not Label.REFERENCE or region.status in LOST:
        return True
    entries = [other for other in regions if other.label is Label.REFERENCE_CONTENT]
    inside = [entry for entry in entries if _overlap(region, entry) > _INSIDE * _overlap(entry, entry)]
    held = sum(_letters(entry.text) for entry in inside if entry.reason not in _QUARANTINE)
    return not inside or held < _CONTAINED * _letters(region.text)


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _overlap(a: RegionResult, b: RegionResult) -> int:
    """Common area in thousandths of the page, squared."""
    width = min(a.bbox[2], b.bbox[2]) - max(a.bbox[0], b.bbox[0])
    height = min(a.bbox[3], b.bbox[3]) - max(a.bbox[1], b.bbox[1])
    return max(0, width) * max(0, height)


def _formula_tags(regions: Sequence[RegionResult]) -> dict[int, int]:
    """Position of each formula -> position of the number printed beside it: the next region, or the one before."""
    tags: dict[int, int] = {}
    for position, region in enumerate(regions):
        if region.label is not Label.FORMULA_NUMBER or not _is_sound(region):
            continue
        for neighbour in (position - 1, position + 1):
            if 0 <= neighbour < len(regions) and _takes_tag(regions[neighbour]) and neighbour not in tags:
                tags[neighbour] = position
                break
    return tags


def _takes_tag(region: RegionResult) -> bool:
    return region.label in _FORMULAS and _is_sound(region) and "\\tag" not in region.text


def _is_sound(region: RegionResult) -> bool:
    """Whether its text stands in the Markdown by itself: nothing quarantined is printed, no comment is lost."""
    return region.status is RegionStatus.OK and bool(region.text.strip())


def _region_blocks(page: int, region: RegionResult, number: str | None) -> Iterator[str]:
    place = f"page {page}, region {region.index} ({region.label.value})"
    if region.figure:
        yield f"![{region.label.value}]({region.figure})"
    quarantined = region.reason in _QUARANTINE
    if region.text.strip() and not quarantined:
        yield _formatted(region, number)
    if region.status in LOST or quarantined:
        yield comment(f"{place}: {region.status.value}", region.reason, region.message)
    elif region.reason is Reason.FIGURE_NOT_READ and not region.figure:
        yield comment(f"{place}: {region.status.value}", region.reason, None)


def _formatted(region: RegionResult, number: str | None) -> str:
    text = region.text.strip()
    match region.label:
        case Label.DOC_TITLE:
            return heading(text, 1)
        case Label.PARAGRAPH_TITLE:
            return heading(text, 2)
        case Label.TABLE:
            return table(text)
        case Label.DISPLAY_FORMULA | Label.INLINE_FORMULA:
            return formula(text, number)
        case _:
            return prose(text)
