"""The detector protocol: what every layout model offers, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from handler.geometry import PixelBox
from handler.schema import Label

Pixels: TypeAlias = NDArray[np.uint8]
"""One page, 8 bits: height x width x 3, RGB; or height x width x 1 where it has no colour at all."""


@dataclass(frozen=True, slots=True)
class Detection:
    """One region the model sees. The box may be degenerate or reach outside the page: the caller clamps."""

    label: Label
    box: PixelBox
    score: float
    """Confidence, 0 to 1."""


class Detector(Protocol):
    """A loaded layout model. `detect` blocks, is called from one worker thread at a time, and may raise."""

    @property
    def name(self) -> str:
        """As it stands in `produced_by.layout`."""

    @property
    def version(self) -> str | None:
        """Package or weights version, as it stands in `produced_by.layout_version`."""

    @property
    def batch_size(self) -> int:
        """Most pages worth giving at once."""

    def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
        """The regions of each page, in reading order; one list per page given."""
