import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from handler.engine.gpu import Gpu
from handler.errors import GateError, ModelError
from handler.geometry import PixelBox
from handler.layout.pp_doclayout_v3 import PPDocLayoutV3, checkpoint_labels, choose_device
from handler.schema import Label
from handler.settings import Settings


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


CARD = Gpu(0, "RTX 4090", (8, 9), 24564, 24000, "550.1", (12, 4))


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Says whether it can use a GPU; the real one is 4 GB."""
    stand_in = SimpleNamespace(
        __version__="2.11.0", version=SimpleNamespace(cuda="12.9"), cuda=SimpleNamespace(is_available=lambda: False)
    )
    monkeypatch.setitem(sys.modules, "torch", stand_in)
    return stand_in


def see(monkeypatch: pytest.MonkeyPatch, *gpus: Gpu) -> None:
    monkeypatch.setattr("handler.layout.pp_doclayout_v3.visible_gpus", lambda mask: gpus)


def test_the_gpu_is_used_where_torch_can(torch: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch, CARD)
    torch.cuda.is_available = lambda: True
    assert choose_device(Settings()) == "cuda"
    assert choose_device(Settings(layout_device="cuda:1")) == "cuda:1"
    assert choose_device(Settings(layout_device="cpu")) == "cpu"


def test_a_gpu_that_torch_cannot_use_ends_the_boot(torch: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch, CARD)
    with pytest.raises(GateError, match=r"needs CUDA 12\.9, there is driver 550\.1 \(CUDA 12\.4\).*LAYOUT_DEVICE=cpu"):
        choose_device(Settings())
    assert choose_device(Settings(layout_device="cpu")) == "cpu"


def test_a_machine_without_a_gpu_uses_the_cpu_unless_told_otherwise(
    torch: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    see(monkeypatch)
    assert choose_device(Settings()) == "cpu"
    with pytest.raises(GateError, match="there is no driver"):
        choose_device(Settings(layout_device="cuda"))
