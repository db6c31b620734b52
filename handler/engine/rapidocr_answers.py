"""From text runs to the answer: plain lines in reading order, or an HTML table.

A table's rows and columns come from the printed rules where there are any, else from white space. No run is ever left
out: where the table cannot be made out, a run stands in the cell that is nearest to its place.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from handler.engine.rapidocr_reader import Line, letter_height
from handler.geometry import PixelBox
from handler.layout.ink import Picture, ink_mask, marks_of
from handler.layout.order import reading_order

RULE_SHARE = 0.5
"""Share of the picture's width or height a rule has, at least."""
RULE_PIECE = 0.1
"""Share of the picture's height or width of the shortest piece of a rule; anything shorter may be a letter's stroke."""
SAME_RULE = 10
"""Pixels within which two rules are one."""
LINE_SLACK = 0.3
"""Share of a run's height by which it may reach into the next line; boxes are drawn with room around the letters."""
ROW_OVERLAP = 0.5
"""Share of the lower of two runs' heights that they have in common when they stand in one row."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Where rules are printed: x of vertical and y of horizontal ones, ascending."""

    xs: tuple[int, ...] = ()
    ys: tuple[int, ...] = ()


def plain_text(lines: Sequence[Line]) -> str:
    """The runs in reading order, column by column; a new line for each printed one."""
    rows: list[list[Line]] = []
    for n in reading_order([line.box for line in lines], slack=LINE_SLACK):
        line = lines[n]
        if rows and _continues(rows[-1][-1].box, line.box):
            rows[-1].append(line)
        else:
            rows.append([line])
    return "\n".join(" ".join(line.text for line in row) for row in rows)


def _continues(before: PixelBox, box: PixelBox) -> bool:
    shared = _common((before.y0, before.y1), (box.y0, box.y1))
    return box.x0 >= before.x1 - before.height and shared > ROW_OVERLAP * min(before.height, box.height)


def printed_rules(picture: Picture) -> Rules:
    """The rules that cross at least half of the picture."""
    mask = ink_mask(picture)
    letter = letter_height(marks_of(mask))
    return Rules(xs=_rules_down(mask, letter), ys=_rules_down(np.ascontiguousarray(mask.T), letter))


def _rules_down(mask: NDArray[np.uint8], letter: float) -> tuple[int, ...]:
    """x of the vertical rules. A rule a little tilted is found in pieces, next to each other."""
    longest_stroke = round(max(mask.shape[0] * RULE_PIECE, 3 * letter))
    pieces = cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((longest_stroke, 1), np.uint8))
    covered = (cv2.dilate(pieces, np.ones((1, SAME_RULE), np.uint8)) > 0).mean(axis=0)
    hits = np.flatnonzero(covered >= RULE_SHARE)
    groups = np.split(hits, np.flatnonzero(np.diff(hits) > SAME_RULE) + 1)
    return tuple(int(group.mean()) for group in groups if len(group))


def html_table(lines: Sequence[Line], rules: Rules) -> str:
    """The runs as an HTML table. Every run is in exactly one cell; an empty table has no cells."""
    rows = _by_rules([line.box.y0 + line.box.y1 for line in lines], rules.ys) or _by_overlap(
        [(line.box.y0, line.box.y1) for line in lines], ROW_OVERLAP
    )
    columns = _by_rules([line.box.x0 + line.box.x1 for line in lines], rules.xs) or _by_overlap(
        [(line.box.x0, line.box.x1) for line in lines], 0.0
    )
    height, width = max(rows, default=-1) + 1, max(columns, default=-1) + 1
    cells: list[list[list[Line]]] = [[[] for _ in range(width)] for _ in range(height)]
    for line, row, column in zip(lines, rows, columns, strict=True):
        cells[row][column].append(line)
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in cells if any(row))
    return f"<table>{body}</table>"


def _cell(lines: Sequence[Line]) -> str:
    ordered = sorted(lines, key=lambda line: (line.box.y0, line.box.x0))
    return f"<td>{html.escape(' '.join(line.text for line in ordered), quote=False)}</td>"


def _by_rules(doubled_centres: Sequence[int], rules: Sequence[int]) -> list[int]:
    """The number of rules before each centre; nothing when there are too few rules to make bands."""
    if len(rules) < 3 or not doubled_centres:
        return []
    bands = [sum(2 * rule < centre for rule in rules) for centre in doubled_centres]
    return [band - min(bands) for band in bands]


def _by_overlap(spans: Sequence[tuple[int, int]], share: float) -> list[int]:
    """A band number for each span: spans that have more than `share` of the shorter one in common share a band."""
    bands: list[tuple[int, int]] = []
    for start, end in sorted(spans, key=lambda span: span[1] - span[0]):
        if not any(_common((start, end), band) > share * min(end - start, band[1] - band[0]) for band in bands):
            bands.append((start, end))
    bands.sort()
    return [max(range(len(bands)), key=lambda n: _common(span, bands[n])) for span in spans]


def _common(a: tuple[int, int], b: tuple[int, int]) -> int:
    return max(0, min(a[1], b[1]) - max(a[0], b[0]))
