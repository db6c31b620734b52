"""`PPDocLayoutDetector` turns a page whose post-processing failed into a page without regions, and only logs it.

The worker must hear of it: a page that could not be looked at is not an empty page. Its chunk-wise fallback is
replaced by a plain call, so that the error comes out; the caller retries page by page.
"""

from typing import Any

from handler.patches.patch import Patch


def needed() -> bool:
    """Whether the detector has a fallback that can answer with an empty result."""
    from glmocr.layout.layout_detector import PPDocLayoutDetector

    fallback = PPDocLayoutDetector._post_process_chunk_with_fallback
    return "_empty_detection_result" in fallback.__code__.co_names


def apply() -> None:
    """Let errors through."""
    from glmocr.layout.layout_detector import PPDocLayoutDetector

    def post_process(
        self: Any, chunk_pil: Any, outputs: Any, target_sizes: Any, pre_threshold: float, chunk_start: int
    ) -> Any:
        return self._image_processor.post_process_object_detection(
            outputs, threshold=pre_threshold, target_sizes=target_sizes
        )

    PPDocLayoutDetector._post_process_chunk_with_fallback = post_process


def verify() -> bool:
    """Whether a processor that fails is heard of."""
    from glmocr.config import LayoutConfig
    from glmocr.layout.layout_detector import PPDocLayoutDetector

    detector = PPDocLayoutDetector(LayoutConfig(id2label={0: "text"}))
    detector._image_processor = None
    try:
        detector._post_process_chunk_with_fallback([], None, None, 0.3, 0)
    except AttributeError:
        return True
    return False


PATCH = Patch(
    name="glmocr_layout_errors",
    target="glmocr",
    why="a page whose layout failed would come back as a page without regions",
    needed=needed,
    apply=apply,
    verify=verify,
)
