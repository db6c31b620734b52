"""The `pages` option as page numbers, and back."""

import re
from collections.abc import Sequence

from glmocr_runpod.errors import ConfigError

_PART = re.compile(r"(\d{1,7})?\s*(-)?\s*(\d{1,7})?", re.ASCII)


def select(spec: str | None, page_count: int) -> tuple[int, ...]:
    """Page numbers from 1, ascending, each once; None selects all. Raises `ConfigError` for a malformed range."""
    chosen: set[int] = set()
    for first, last in _ranges(spec):
        chosen.update(range(first, min(last or page_count, page_count) + 1))
    return tuple(sorted(chosen))


def beyond(spec: str | None, page_count: int) -> str | None:
    """What `spec` asks of the pages after `page_count`, as `spec` would say it: a page tree may count too few."""
    lasts = [last for _, last in _ranges(spec)]
    if None in lasts:
        return f"{page_count + 1}-"
    furthest = max(last for last in lasts if last)
    return f"{page_count + 1}-{furthest}" if furthest > page_count else None


def canonical(spec: str | None) -> str | None:
    """The one spelling of a selection, as the worker spells it: ascending, no overlaps; None for all pages."""
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


def _ranges(spec: str | None) -> list[tuple[int, int | None]]:
    """First and last page of each range; None where it goes on to the end."""
    return [_range(part.strip()) for part in spec.split(",")] if spec and spec.strip() else [(1, None)]


def _range(part: str) -> tuple[int, int | None]:
    match = _PART.fullmatch(part)
    start, dash, end = match.groups() if match else (None, None, None)
    if start is None and end is None:
        raise ConfigError(f"pages: {part!r} is not a page or a range; write for example 1-3,7,10-")
    first = int(start) if start is not None else 1
    last = int(end) if end is not None else (None if dash else first)
    if first < 1 or (last is not None and last < first):
        raise ConfigError(f"pages: {part!r} runs backwards or below page 1")
    return first, last


def spell(numbers: Sequence[int]) -> str:
    """`1-3,7` for 1, 2, 3, 7."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ",".join(_spelt(*run) for run in runs)


def chunks(numbers: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """At most `size` numbers each, as even as can be."""
    count = -(-len(numbers) // size)
    return [tuple(numbers[len(numbers) * i // count : len(numbers) * (i + 1) // count]) for i in range(count)]
