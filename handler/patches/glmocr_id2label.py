"""`PPDocLayoutDetector` reads `config.id2label`, which `LayoutConfig` of 0.1.1-0.1.4 does not have: AttributeError.

0.1.5 declares the field. The detector then takes the names from the checkpoint, which
`layout/pp_doclayout_v3.py` has checked before.
"""

from typing import Any

from handler.patches.patch import Patch


def needed() -> bool:
    """Whether a default configuration has no `id2label`."""
    from glmocr.config import LayoutConfig

    return not hasattr(LayoutConfig(), "id2label")


def apply() -> None:
    """Fill it in before the detector looks."""
    from glmocr.layout.layout_detector import PPDocLayoutDetector

    original = PPDocLayoutDetector.__init__

    def initialise(self: PPDocLayoutDetector, config: Any) -> None:
        if not hasattr(config, "id2label"):
            config.id2label = None
        original(self, config)

    PPDocLayoutDetector.__init__ = initialise


def verify() -> bool:
    """Whether a detector can be made without names, and keeps those it is given."""
    from glmocr.config import LayoutConfig
    from glmocr.layout.layout_detector import PPDocLayoutDetector

    without = PPDocLayoutDetector(LayoutConfig())
    given = PPDocLayoutDetector(LayoutConfig(id2label={0: "text"}))
    return without.id2label is None and dict(given.id2label) == {0: "text"}


PATCH = Patch(
    name="glmocr_id2label",
    target="glmocr",
    why="PPDocLayoutDetector reads config.id2label, which LayoutConfig lacks",
    needed=needed,
    apply=apply,
    verify=verify,
)
