"""Reading order from geometry alone: bands from top to bottom, columns from left to right inside them.

For models that give boxes without an order. A recursive cut along white space, with one addition: neighbouring bands
that share a gutter are one block of columns, so each column is read to its end before the next one starts.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from handler.geometry import PixelBox

_Item: TypeAlias = tuple[int, PixelBox]

FILLS_COLUMN = 0.6
"""Share of a column's width from which a lone box below the columns still counts as one of its paragraphs."""
SIDE_SLACK = 0.03
"""Share of a box's width by which its sides may reach into a neighbour."""


def reading_order(boxes: Sequence[PixelBox], slack: float = 0.1) -> list[int]:
    """Indices of `boxes` as they are read. Boxes may overlap by `slack` of their height and still be two bands."""
    items = [(index, _shrunk(box, slack)) for index, box in enumerate(boxes)]
    return [index for index, _ in _ordered(items)]


def _shrunk(box: PixelBox, slack: float) -> PixelBox:
    dx, dy = int(box.width * SIDE_SLACK), int(box.height * slack)
    return PixelBox(box.x0 + dx, box.y0 + dy, box.x1 - dx, box.y1 - dy)


def _ordered(items: list[_Item]) -> Iterator[_Item]:
    bands = _bands(items)
    if len(bands) > 1:
        for block in _blocks(bands):
            if len(block) == 1:
                yield from _ordered(block[0])
            else:
                yield from _by_column([item for band in block for item in band])
    else:
        yield from _by_column(items)


def _by_column(items: list[_Item]) -> Iterator[_Item]:
    columns = _columns(items)
    if len(columns) == 1:
        yield from sorted(items, key=lambda item: (item[1].y0, item[1].x0))
    else:
        for column in columns:
            yield from _ordered(column)


def _bands(items: Sequence[_Item]) -> list[list[_Item]]:
    """Groups that horizontal white space separates, from the top."""
    groups: list[list[_Item]] = []
    end = None
    for item in sorted(items, key=lambda item: item[1].y0):
        if end is None or item[1].y0 >= end:
            groups.append([])
            end = item[1].y1
        groups[-1].append(item)
        end = max(end, item[1].y1)
    return groups


def _columns(items: Sequence[_Item]) -> list[list[_Item]]:
    """Groups that vertical white space separates, from the left."""
    flipped = [(index, PixelBox(box.y0, box.x0, box.y1, box.x1)) for index, box in items]
    return [[(index, PixelBox(box.y0, box.x0, box.y1, box.x1)) for index, box in group] for group in _bands(flipped)]


def _blocks(bands: Sequence[list[_Item]]) -> Iterator[list[list[_Item]]]:
    """Runs of bands that are read together: a block of columns, or one band by itself."""
    start = 0
    while start < len(bands):
        end = start + 1
        if len(_columns(bands[start])) > 1:
            end = _end_of_columns(bands, start)
        yield list(bands[start:end])
        start = end


def _end_of_columns(bands: Sequence[list[_Item]], start: int) -> int:
    """Where the block of columns that begins at `start` ends: its gutter is closed, or what follows fills no column."""
    block = list(bands[start])
    columns_end = end = start + 1
    while end < len(bands) and len(_columns([*block, *bands[end]])) > 1:
        block += bands[end]
        end += 1
        if len(_columns(bands[end - 1])) > 1:
            columns_end = end
    widest = [max(_width(column) for column in _columns(band)) for band in bands[start:columns_end]]
    tail = [_width(band) for band in bands[columns_end:end]]
    return end if tail and max(tail) >= FILLS_COLUMN * max(widest) else columns_end


def _width(items: Sequence[_Item]) -> int:
    return max(box.x1 for _, box in items) - min(box.x0 for _, box in items)
