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
    for part in spec.split(","):
        first, last = _bounds(part.strip(), page_count)
        chosen.update(range(first, min(last, page_count) + 1))
    if not chosen:
        raise PagesOutOfRange(f"pages={spec!r} selects no page: the document has {page_count}", page_count=page_count)
    return tuple(sorted(chosen))


def _bounds(part: str, page_count: int) -> tuple[int, int]:
    match = _PART.fullmatch(part)
    start, dash, end = match.groups() if match else (None, None, None)
    if start is None and end is None:
        raise InputError(f"pages: {part!r} is not a page or a range; write for example 1-3,7,10-")
    first = int(start) if start is not None else 1
    last = int(end) if end is not None else (page_count if dash else first)
    if first < 1 or (end is not None and last < first):
        raise InputError(f"pages: {part!r} runs backwards or below page 1")
    return first, last
