import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from handler.errors import PatchError
from handler.patches.patch import Patch
from handler.patches.registry import PATCHES, TESTED_GLMOCR, apply_patches, refuse_untested


def test_tested_versions_boot_and_others_need_permission() -> None:
    for version in TESTED_GLMOCR:
        refuse_untested(version, allow_untested=False)
    with pytest.raises(PatchError, match=r"glmocr 0\.2\.0 is not one of .*GLMOCR_ALLOW_UNTESTED=1"):
        refuse_untested("0.2.0", allow_untested=False)
    refuse_untested("0.2.0", allow_untested=True)
    with pytest.raises(PatchError, match="not installed"):
        refuse_untested(None, allow_untested=True)


def failing(error: Exception) -> Callable[[], bool]:
    def fail() -> bool:
        raise error

    return fail


@pytest.mark.parametrize(
    "error",
    [
        ImportError("no module named torch"),
        AttributeError("connect"),
        OSError("libcublas.so.12: cannot open shared object file"),
        RuntimeError("operator torchvision::nms does not exist"),
        TypeError("LayoutConfig() got an unexpected keyword argument"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_target_that_is_missing_or_changed_ends_the_boot(error: Exception) -> None:
    patch = Patch("example", "glmocr", "why", failing(error), lambda: None, lambda: True)
    with pytest.raises(PatchError, match=r"patch example of glmocr .* failed: .*; install a tested version"):
        apply_patches(allow_untested=True, patches=[patch])


def test_a_patch_without_effect_ends_the_boot() -> None:
    patch = Patch("example", "glmocr", "why", lambda: True, lambda: None, lambda: False)
    with pytest.raises(PatchError, match="no effect"):
        apply_patches(allow_untested=True, patches=[patch])


def test_every_patch_says_what_it_is_for() -> None:
    assert len({patch.name for patch in PATCHES}) == len(PATCHES)
    assert all(patch.why and patch.target for patch in PATCHES)


def test_importing_the_sdk_starts_no_other_process() -> None:
    code = """
import json, subprocess, sys
from handler.patches import registry
[report] = registry.apply_to_sdk()
def refused(*args, **kwargs):
    raise AssertionError(f"started {args}")
subprocess.Popen.__init__ = refused
import runpod
from runpod.serverless.utils import rp_debugger
print(json.dumps([report.name, report.outcome, rp_debugger.PROCESSOR]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["runpod_cpu_info", "applied", "Unable to get processor info."]


STAND_INS = """
import json, sys, types
from dataclasses import asdict
torch = types.ModuleType("torch")
torch.distributed = types.ModuleType("torch.distributed")
safetensors = types.ModuleType("safetensors")
safetensors.SafetensorError = type("SafetensorError", (Exception,), {})
class Weights:
    @staticmethod
    def from_pretrained(model_dir, output_loading_info=False):
        if model_dir == "damaged":
            raise safetensors.SafetensorError("header too small")
        return ("model", {"missing_keys": {"decoder.weight"}, "mismatched_keys": set()})
transformers = types.ModuleType("transformers")
transformers.PPDocLayoutV3ForObjectDetection = Weights
transformers.PPDocLayoutV3ImageProcessor = type("Processor", (), {})
sys.modules |= {"torch": torch, "torch.distributed": torch.distributed, "transformers": transformers,
                "safetensors": safetensors}
"""
"""Just enough of torch and transformers to import glmocr's detector; `make test-engine` has the real ones."""


def in_a_process(code: str) -> dict[str, object]:
    """Run `code` where its patches hurt nobody; it prints one line of JSON last."""
    done = subprocess.run([sys.executable, "-c", STAND_INS + code], capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def test_all_patches_apply_to_the_installed_glmocr_and_a_second_round_finds_nothing_to_do() -> None:
    rounds = in_a_process("""
from handler.patches.registry import apply_patches
outcomes = [{r.name: r.outcome for r in apply_patches(allow_untested=False)} for _ in range(2)]
from PIL import Image
from glmocr.layout import layout_detector
refusals = []
for folder in ("folder", "damaged"):
    try:
        layout_detector.PPDocLayoutV3ForObjectDetection.from_pretrained(folder)
    except Exception as error:
        refusals.append(f"{type(error).__name__}: {error}")
print(json.dumps({"first": outcomes[0], "second": outcomes[1], "pixels": Image.MAX_IMAGE_PIXELS, "refusals": refusals,
                  "single": torch.distributed.get_world_size() == 1 and not torch.distributed.is_initialized()}))
""")
    assert rounds["first"] == {
        "torch_rendezvous": "applied",
        "torch_distributed": "applied",
        "glmocr_connect": "applied",
        "glmocr_id2label": "not needed",
        "glmocr_load_report": "applied",
        "glmocr_layout_errors": "applied",
        "pillow_pixels": "applied",
    }
    assert set(rounds["second"].values()) == {"not needed"}  # type: ignore[attr-defined]
    assert rounds["pixels"] == 89478485
    assert rounds["refusals"] == [
        "IncompleteWeights: missing_keys decoder.weight (1 in all)",
        "IncompleteWeights: its weights are damaged: header too small",
    ]
    assert rounds["single"] is True


def test_labels_are_filled_in_where_the_configuration_has_none() -> None:
    outcome = in_a_process("""
from glmocr.layout.layout_detector import PPDocLayoutDetector
from glmocr import config
class Config(config.BaseModel):  # as in 0.1.1-0.1.4: the field is not declared, but may be given
    model_config = config.ConfigDict(extra="allow")
    model_dir: str | None = None
    threshold: float = 0.3
    threshold_by_class: dict | None = None
    batch_size: int = 1
    cuda_visible_devices: str = "0"
    device: str | None = None
    layout_nms: bool = True
    layout_unclip_ratio: list | None = None
    layout_merge_bboxes_mode: str = "large"
    label_task_mapping: dict | None = None
config.LayoutConfig = Config
from handler.patches import glmocr_id2label
from handler.patches.patch import run
def strict(self, config):  # as those versions read it
    self.id2label = config.id2label
PPDocLayoutDetector.__init__ = strict
print(json.dumps(asdict(run(glmocr_id2label.PATCH))))
""")
    assert outcome["outcome"] == "applied"
