"""Boxes on a page, in pixels of its render."""

from dataclasses import dataclass

from handler.schema import BBox

BBOX_SCALE = 1000


@dataclass(frozen=True, slots=True, order=True)
class PixelBox:
    """A rectangle in pixels: x0 <= x < x1, y0 <= y < y1."""

    x0: int
    y0: int
    x1: int
    y1: int

    @property
    def width(self) -> int:
        """Pixels across; negative for an inside-out box."""
        return self.x1 - self.x0

    @property
    def height(self) -> int:
        """Pixels down; negative for an inside-out box."""
        return self.y1 - self.y0

    @property
    def area(self) -> int:
        """Pixels inside; 0 for an inside-out box."""
        return max(0, self.width) * max(0, self.height)

    def as_bbox(self) -> BBox:
        """The wire form in pixels."""
        return (self.x0, self.y0, self.x1, self.y1)

    def normalised(self, width: int, height: int) -> BBox:
        """Thousandths of a page of `width` x `height` pixels."""
        return (
            round(self.x0 * BBOX_SCALE / width),
            round(self.y0 * BBOX_SCALE / height),
            round(self.x1 * BBOX_SCALE / width),
            round(self.y1 * BBOX_SCALE / height),
        )

    def clamped(self, width: int, height: int) -> "PixelBox":
        """The part inside a page of `width` x `height` pixels, never smaller than 1 x 1."""
        x0 = min(max(min(self.x0, self.x1), 0), width - 1)
        y0 = min(max(min(self.y0, self.y1), 0), height - 1)
        x1 = max(min(max(self.x0, self.x1), width), x0 + 1)
        y1 = max(min(max(self.y0, self.y1), height), y0 + 1)
        return PixelBox(x0, y0, x1, y1)


def page_box(width: int, height: int) -> PixelBox:
    """The whole page."""
    return PixelBox(0, 0, width, height)
