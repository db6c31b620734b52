"""PP-DocLayoutV3 through glmocr's own detector, from a local directory; what it keeps to itself is checked here.

Its default configuration drops headers, footers and page numbers, and rounds boxes down to thousandths of the page.
Here every label is kept, and boxes are widened by the thousandth that may be missing at their right and lower edge.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from handler.engine.api import EngineName
from handler.engine.gpu import visible_gpus
from handler.errors import GateError, ModelError
from handler.geometry import BBOX_SCALE, PixelBox
from handler.layout.colour import as_rgb
from handler.layout.detector import Detection, Pixels
from handler.layout.names import LayoutName
from handler.models.resolve import resolve
from handler.patches.glmocr_load_report import IncompleteWeights
from handler.patches.patch import installed_version
from handler.schema import Label
from handler.settings import Settings, forbid_hub

log = logging.getLogger(__name__)

PP_DOCLAYOUT_V3 = "pp-doclayout-v3"
"""Its name in models.manifest.yaml."""
THRESHOLD = 0.3
"""glmocr 0.1.5's packaged value."""
MERGE_MODES = {Label.REFERENCE: "small"}
"""Which of two nested boxes stays, as glmocr's packaged configuration has it: the inner one here, else the outer."""
GPU_BATCH, CPU_BATCH = 8, 1
TASK_KEPT = "text"


class PPDocLayoutV3:
    """The loaded model. Implements `handler.layout.detector.Detector`."""

    name = str(LayoutName.PP_DOCLAYOUT_V3)

    def __init__(self, detector: Any, device: str, batch_size: int) -> None:
        self._detector = detector
        self.device = device
        self._batch_size = batch_size

    @property
    def version(self) -> str | None:
        """glmocr's, which decides how boxes are merged."""
        return f"glmocr {installed_version('glmocr')}"

    @property
    def batch_size(self) -> int:
        """Most pages worth giving at once."""
        return self._batch_size

    def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
        """The regions of each page in reading order. Raises whatever the model raises."""
        images = [Image.fromarray(as_rgb(page)) for page in pages]
        answer = self._detector.process(images)
        regions = answer[0] if isinstance(answer, tuple) else answer  # 0.1.5 adds pictures of its result
        return [
            [_detection(region, image.size) for region in found] for found, image in zip(regions, images, strict=True)
        ]


def load(settings: Settings) -> PPDocLayoutV3:
    """Check and load. The boot patches must have been applied before. Raises `ModelError` or `GateError`."""
    forbid_hub()
    model_dir = resolve(PP_DOCLAYOUT_V3, settings)
    names = checkpoint_labels(model_dir)
    device = choose_device(settings)
    batch_size = settings.layout_batch_size or (CPU_BATCH if device == "cpu" else GPU_BATCH)
    detector = _start_detector(model_dir, names, device, batch_size)
    log.info("layout model on %s, %d pages at once", device, batch_size)
    return PPDocLayoutV3(detector, device, batch_size)


def checkpoint_labels(model_dir: Path) -> dict[int, Label]:
    """The label of each class. Raises `ModelError` where the checkpoint does not name them: nothing would be found."""
    try:
        config = json.loads((model_dir / "config.json").read_text("utf-8"))
        named = {int(number): str(name) for number, name in config["id2label"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"{model_dir}/config.json has no id2label ({error!r}); take the published file") from None
    known = set(Label)
    unknown = sorted({name for name in named.values() if name not in known})
    if unknown or not named:
        shown = ", ".join(unknown[:3]) or "none at all"
        raise ModelError(f"{model_dir}/config.json names labels that are not PP-DocLayoutV3's: {shown}")
    return {number: Label(name) for number, name in named.items()}


def choose_device(settings: Settings) -> str:
    """Where the model runs. Raises `GateError` when there is a GPU that torch cannot use."""
    import torch

    if settings.layout_device == "cpu":
        return "cpu"
    gpus = visible_gpus(settings.cuda_visible_devices)
    if torch.cuda.is_available():
        return settings.layout_device or "cuda"
    if gpus or settings.layout_device:
        driver = f"driver {gpus[0].driver} (CUDA {gpus[0].cuda[0]}.{gpus[0].cuda[1]})" if gpus else "no driver"
        raise GateError(
            f"torch {torch.__version__} cannot use the GPU: it needs CUDA {torch.version.cuda}, there is {driver}; "
            "use an image for an older CUDA, a host with a newer driver, or LAYOUT_DEVICE=cpu"
        )
    if settings.glmocr_engine is EngineName.SGLANG:
        log.warning("no GPU for the layout model, it runs on the CPU")
    return "cpu"


def _start_detector(model_dir: Path, names: Mapping[int, Label], device: str, batch_size: int) -> Any:
    from glmocr.config import LayoutConfig
    from glmocr.layout.layout_detector import PPDocLayoutDetector

    config = LayoutConfig(
        model_dir=str(model_dir),
        threshold=THRESHOLD,
        batch_size=batch_size,
        device=device,
        layout_nms=True,
        layout_unclip_ratio=[1.0, 1.0],
        layout_merge_bboxes_mode={number: MERGE_MODES.get(label, "large") for number, label in names.items()},
        label_task_mapping={TASK_KEPT: [str(label) for label in Label]},
        id2label={number: str(label) for number, label in names.items()},
    )
    detector = PPDocLayoutDetector(config)
    try:
        detector.start()
    except (IncompleteWeights, OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"the layout model in {model_dir} does not load: {error}") from error
    return detector


def _detection(region: Mapping[str, Any], size: tuple[int, int]) -> Detection:
    width, height = size
    x0, y0, x1, y1 = (int(value) for value in region["bbox_2d"])
    box = PixelBox(
        x0 * width // BBOX_SCALE,
        y0 * height // BBOX_SCALE,
        -(-(x1 + 1) * width // BBOX_SCALE),
        -(-(y1 + 1) * height // BBOX_SCALE),
    )
    return Detection(Label(region["label"]), box, float(region["score"]))
