"""The `pages` option: `1-3,7,10-` as page numbers."""

import re

from handler.errors import InputError, PagesOutOfRange

_PART = re.compile(r"(\d{1,7})?\s*(-)?\s*(\d{1,7})?", re.ASCII)


def select_pages(spec: str | None, page_count: int) -> tuple[int, ...]:
    """Page numbers from 1, ascending, each once. None selects all.

    Numbers beyond the document are left out. Raises `InputError` for a malformed range and
    `PagesOutOfRange` when nothing is left.
    """
    if spec is None or not spec.strip():
        return tuple(range(1, page_count + 1))
    chosen: set[int] = set()
    for first, last in _ranges(spec):
        chosen.update(range(first, min(last or page_count, page_count) + 1))
    if not chosen:
        raise PagesOutOfRange(f"pages={spec!r} selects no page: the document has {page_count}", page_count=page_count)
    return tuple(sorted(chosen))


def canonical(spec: str | None) -> str | None:
    """The one spelling of a selection, ascending and without overlaps; None for all pages.

    Raises `InputError` for a malformed range.
    """
    if spec is None or not spec.strip():
        return None
    merged: list[tuple[int, int | None]] = []
    for first, last in sorted(_ranges(spec), key=lambda found: found[0]):
        begun, until = merged[-1] if merged else (first, first)
        if not merged or (until is not None and first > until + 1):
            merged.append((first, last))
        else:
            merged[-1] = (begun, None if until is None or last is None else max(until, last))
    return None if merged == [(1, None)] else ",".join(_spelt(*found) for found in merged)


def _spelt(first: int, last: int | None) -> str:
    return str(first) if first == last else f"{first}-{last or ''}"


def _ranges(spec: str) -> list[tuple[int, int | None]]:
    """First and last page of each range; None where it goes on to the end."""
    return [_range(part.strip()) for part in spec.split(",")]


def _range(part: str) -> tuple[int, int | None]:
    match = _PART.fullmatch(part)
    start, dash, end = match.groups() if match else (None, None, None)
    if start is None and end is None:
        raise InputError(f"pages: {part!r} is not a page or a range; write for example 1-3,7,10-")
    first = int(start) if start is not None else 1
    last = int(end) if end is not None else (None if dash else first)
    if first < 1 or (last is not None and last < first):
        raise InputError(f"pages: {part!r} runs backwards or below page 1")
    return first, last
