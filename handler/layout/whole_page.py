"""No layout model: the page is one region of text."""

from collections.abc import Sequence

from handler.geometry import page_box
from handler.layout.detector import Detection, Pixels
from handler.layout.names import LayoutName
from handler.schema import Label


class WholePage:
    """Every page is one region of text. Nothing can be missed, and nothing is told apart."""

    name = LayoutName.WHOLE_PAGE.value
    version: str | None = None
    batch_size = 8

    def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
        """One region for each page."""
        return [[Detection(Label.TEXT, page_box(page.shape[1], page.shape[0]), 1.0)] for page in pages]
