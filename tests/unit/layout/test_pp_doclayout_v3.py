import json
from pathlib import Path

import numpy as np
import pytest

from handler.errors import ModelError
from handler.geometry import PixelBox
from handler.layout.pp_doclayout_v3 import PPDocLayoutV3, checkpoint_labels
from handler.schema import Label


class Detector:
    """Answers as glmocr's detector does; 0.1.5 returns a tuple, earlier versions the list alone."""

    def __init__(self, as_tuple: bool) -> None:
        self.as_tuple = as_tuple

    def process(self, images: list[object]) -> object:
        regions = [{"label": "text", "score": 0.5, "bbox_2d": [0, 100, 999, 500]}]
        found = [regions for _ in images]
        return (found, {}) if self.as_tuple else found


@pytest.mark.parametrize("as_tuple", [True, False])
def test_boxes_are_in_pixels_and_never_smaller_than_what_was_found(as_tuple: bool) -> None:
    detector = PPDocLayoutV3(Detector(as_tuple), "cpu", 1)
    pages = [np.zeros((2000, 1000, 3), np.uint8), np.zeros((100, 333, 3), np.uint8)]
    first, second = detector.detect(pages)
    assert first[0].box == PixelBox(0, 200, 1000, 1002)
    assert second[0].box == PixelBox(0, 10, 333, 51)
    assert first[0].label is Label.TEXT


def write_config(folder: Path, config: object) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_labels_come_from_the_checkpoint(tmp_path: Path) -> None:
    write_config(tmp_path, {"id2label": {"0": "abstract", "22": "text"}})
    assert checkpoint_labels(tmp_path) == {0: Label.ABSTRACT, 22: Label.TEXT}


@pytest.mark.parametrize("config", [{}, {"id2label": None}, {"id2label": {}}, {"id2label": {"0": "LABEL_0"}}, []])
def test_a_checkpoint_without_names_is_refused_since_nothing_would_be_found(tmp_path: Path, config: object) -> None:
    with pytest.raises(ModelError, match=r"id2label|labels that are not"):
        checkpoint_labels(write_config(tmp_path, config))


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="id2label"):
        checkpoint_labels(tmp_path)
