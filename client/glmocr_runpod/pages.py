"""The `pages` option as page numbers, and back."""

import re
from collections.abc import Sequence

from glmocr_runpod.errors import ConfigError

_PART = re.compile(r"(\d{1,7})?\s*(-)?\s*(\d{1,7})?", re.ASCII)


def select(spec: str | None, page_count: int) -> tuple[int, ...]:
    """Page numbers from 1, ascending, each once; None selects all. Raises `ConfigError` for a malformed range."""
    if spec is None or not spec.strip():
        return tuple(range(1, page_count + 1))
    chosen: set[int] = set()
    for part in spec.split(","):
        match = _PART.fullmatch(part.strip())
        start, dash, end = match.groups() if match else (None, None, None)
        if start is None and end is None:
            raise ConfigError(f"pages: {part!r} is not a page or a range; write for example 1-3,7,10-")
        first = int(start) if start else 1
        last = int(end) if end else (page_count if dash else first)
        chosen.update(range(max(first, 1), min(last, page_count) + 1))
    return tuple(sorted(chosen))


def spell(numbers: Sequence[int]) -> str:
    """`1-3,7` for 1, 2, 3, 7."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def chunks(numbers: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """At most `size` numbers each, as even as can be."""
    count = -(-len(numbers) // size)
    return [tuple(numbers[len(numbers) * i // count : len(numbers) * (i + 1) // count]) for i in range(count)]
