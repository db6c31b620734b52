import numpy as np
import pytest

from handler.geometry import PixelBox
from handler.layout.loading import load_detector
from handler.layout.names import LayoutName
from handler.schema import Label
from handler.settings import Settings


@pytest.mark.parametrize("name", [LayoutName.CDLA, LayoutName.WHOLE_PAGE])
def test_the_detector_is_the_one_named(name: LayoutName) -> None:
    assert load_detector(Settings(glmocr_layout=name)).name == name


def test_the_whole_page_is_one_region_of_text() -> None:
    detector = load_detector(Settings(glmocr_layout=LayoutName.WHOLE_PAGE))
    [[found]] = detector.detect([np.full((30, 20, 3), 255, np.uint8)])
    assert (found.label, found.box) == (Label.TEXT, PixelBox(0, 0, 20, 30))
