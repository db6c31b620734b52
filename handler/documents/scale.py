"""At what size a page is rendered: the resolution asked for, within what is readable and what is affordable."""

import math
from dataclasses import dataclass

from handler.documents.failures import RenderFailure
from handler.schema import PageWarning, Reason

POINTS_PER_INCH = 72
LONG_EDGE_LIMIT = 30_000
"""OpenCV and JPEG stop at 32767 and 65535 pixels."""
SHORT_EDGE_WANTED = 56
"""Two of the engine's patches; below this nothing is legible."""
DPI_LIMIT = 1200


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of one render."""

    width: int
    height: int
    dpi: float
    warnings: tuple[PageWarning, ...] = ()

    @property
    def factor(self) -> float:
        """Pixels per point."""
        return self.dpi / POINTS_PER_INCH


def page_scale(width_pt: float, height_pt: float, dpi: int, max_pixels: int) -> Scale:
    """The render size of a page of `width_pt` x `height_pt` points asked for at `dpi`.

    Raises `RenderFailure` for a page without an extent.
    """
    if not (0 < width_pt < math.inf and 0 < height_pt < math.inf):
        raise RenderFailure(Reason.PAGE_DAMAGED, f"the page has no size: {width_pt:g} x {height_pt:g} points")
    wanted = dpi / POINTS_PER_INCH
    limit = min(LONG_EDGE_LIMIT / max(width_pt, height_pt), math.sqrt(max_pixels / (width_pt * height_pt)))
    legible = min(SHORT_EDGE_WANTED / min(width_pt, height_pt), DPI_LIMIT / POINTS_PER_INCH)
    factor = min(max(wanted, legible), limit)
    width, height = (max(1, round(side * factor)) for side in (width_pt, height_pt))
    if width * height > max_pixels:
        width, height = (max(1, math.floor(side * factor)) for side in (width_pt, height_pt))
    real = factor * POINTS_PER_INCH
    return Scale(width, height, round(real, 2), _warnings(real, dpi))


def image_scale(width: int, height: int, max_pixels: int) -> float:
    """By how much a picture is scaled, at most 1."""
    return min(1.0, LONG_EDGE_LIMIT / max(width, height), math.sqrt(max_pixels / (width * height)))


def scaled_down(what: str) -> PageWarning:
    """The warning for a page smaller than it could be."""
    return PageWarning(reason=Reason.PAGE_SCALED_DOWN, message=what)


def _warnings(real: float, asked: int) -> tuple[PageWarning, ...]:
    if real < asked - 0.5:
        return (scaled_down(f"rendered at {real:.0f} dpi instead of {asked}: the page is very large"),)
    if real > asked + 0.5:
        message = f"rendered at {real:.0f} dpi instead of {asked}: the page is very small"
        return (PageWarning(reason=Reason.PAGE_SCALED_UP, message=message),)
    return ()
