"""Pages for models that only know RGB."""

import cv2
import numpy as np

from handler.layout.detector import Pixels


def as_rgb(page: Pixels) -> Pixels:
    """The page as height x width x 3; itself if it is so already."""
    return page if page.shape[2] == 3 else np.asarray(cv2.cvtColor(page, cv2.COLOR_GRAY2RGB), np.uint8)
