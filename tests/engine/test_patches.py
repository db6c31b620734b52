"""The patches on glmocr's real wheels with real torch and transformers, and the detector behind them."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.engine.conftest import ROOT

WHEELS = ROOT / ".cache" / "engine" / "wheels"
USE = """
import json, sys
import numpy as np
from handler.layout import pp_doclayout_v3
from handler.patches.registry import apply_for
from handler.settings import Settings
settings = Settings()
reports = {r.name: [r.version, r.outcome] for r in apply_for(settings)}
try:
    detector = pp_doclayout_v3.load(settings)
    found = [[d.label for d in page] for page in detector.detect([np.full((400, 300, 3), 255, np.uint8)] * 2)]
except Exception as error:
    print(json.dumps({"patches": reports, "error": f"{type(error).__name__}: {error}"}))
else:
    from PIL import Image
    print(json.dumps({"patches": reports, "found": found, "version": detector.version, "device": detector.device,
                      "pixels": Image.MAX_IMAGE_PIXELS}))
"""


@pytest.fixture(scope="session", params=["0.1.4", "0.1.5"])
def wheel(request: pytest.FixtureRequest) -> Path:
    """A folder to put in front of everything, with this glmocr in it."""
    folder = WHEELS / str(request.param)
    if not (folder / "glmocr").exists():
        WHEELS.mkdir(parents=True, exist_ok=True)
        version = f"glmocr=={request.param}"
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", WHEELS, version], check=True)
        with zipfile.ZipFile(next(WHEELS.glob(f"glmocr-{request.param}-*.whl"))) as archive:
            archive.extractall(folder)
    return folder


def use(wheel: Path, layout: Path) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", USE],
        env={
            **os.environ,
            "PYTHONPATH": f"{wheel}:{ROOT}",
            "LAYOUT_MODEL_PATH": str(layout),
            "CUDA_VISIBLE_DEVICES": "",
        },
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    print(answer)
    return answer


def test_patches_apply_and_the_detector_finds_regions(wheel: Path, models: Path) -> None:
    answer = use(wheel, models / "layout")
    patches = answer["patches"]
    assert isinstance(patches, dict)
    old = wheel.name == "0.1.4"
    assert patches["glmocr_id2label"] == [wheel.name, "applied" if old else "not needed"]
    assert patches["glmocr_connect"][1] == patches["glmocr_load_report"][1] == "applied"
    assert patches["glmocr_layout_errors"][1] == patches["pillow_pixels"][1] == "applied"
    assert patches["torch_distributed"][1] == "not needed"
    assert answer["version"] == f"glmocr {wheel.name}"
    assert answer["pixels"] == 89478485
    found = answer["found"]
    assert isinstance(found, list)
    assert len(found) == 2
    assert all(page for page in found)


def test_a_checkpoint_without_labels_is_refused(wheel: Path, models: Path) -> None:
    assert "ModelError" in str(use(wheel, models / "layout_unnamed")["error"])


def test_a_checkpoint_that_is_cut_off_is_refused(wheel: Path, models: Path, tmp_path: Path) -> None:
    for path in (models / "layout").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes()[:5000])
    error = str(use(wheel, tmp_path)["error"])
    assert "ModelError" in error
    assert "its weights are damaged" in error


def test_a_checkpoint_with_missing_weights_is_refused(wheel: Path, models: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(models / "layout" / "model.safetensors")
    missing = sorted(name for name in tensors if "decoder" in name)[0]
    save_file({k: v for k, v in tensors.items() if k != missing}, tmp_path / "model.safetensors", {"format": "pt"})
    for name in ("config.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((models / "layout" / name).read_bytes())
    error = str(use(wheel, tmp_path)["error"])
    assert "ModelError" in error
    assert "missing_keys" in error
