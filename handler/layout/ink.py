"""What is printed on a picture: which pixels, and the marks they make."""

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Picture: TypeAlias = NDArray[np.uint8]
"""height x width x 3, 8 bits; the order of the colours does not matter here."""

NEIGHBOURHOOD = 41
"""Side of the square a pixel is compared with, pixels."""
DARKER = 18
"""Grey levels below the neighbourhood's mean from which a pixel is ink; scanner noise stays under it."""
SPECK = 4
"""Marks of at most this many pixels are dirt."""


def ink_mask(picture: Picture) -> NDArray[np.uint8]:
    """255 where a pixel is darker than its surroundings, 0 elsewhere."""
    grey = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY)
    mask = cv2.adaptiveThreshold(grey, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY_INV, NEIGHBOURHOOD, DARKER)
    return np.asarray(mask, dtype=np.uint8)


def marks_of(mask: NDArray[np.uint8]) -> NDArray[np.int32]:
    """One row of x, y, width, height, ink pixels for each connected mark, specks left out."""
    _, _, stats, _ = cv2.connectedComponentsWithStats(mask, connectivity=8)
    marks = np.asarray(stats[1:], dtype=np.int32)
    return marks[marks[:, cv2.CC_STAT_AREA] > SPECK]
