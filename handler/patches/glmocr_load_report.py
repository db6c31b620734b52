"""`PPDocLayoutDetector.start` ignores what transformers says about the weights it loaded.

A checkpoint with missing tensors loads with random ones in their place, with a warning. The class it loads is
replaced, in its module only, by one whose `from_pretrained` reads the load report and refuses. So does a file that is
cut off or none of safetensors', whose error derives from nothing more telling than `Exception`.
"""

from typing import Any

from handler.patches.patch import Patch


class IncompleteWeights(Exception):
    """The checkpoint does not fill the model."""


def needed() -> bool:
    """Whether the detector still loads transformers' own class."""
    from glmocr.layout import layout_detector

    return not hasattr(layout_detector.PPDocLayoutV3ForObjectDetection, "checks_load_report")


def apply() -> None:
    """Put the checking loader in its place."""
    from glmocr.layout import layout_detector

    layout_detector.PPDocLayoutV3ForObjectDetection = CheckingLoader(layout_detector.PPDocLayoutV3ForObjectDetection)


def verify() -> bool:
    """Whether it is there."""
    return not needed()


class CheckingLoader:
    """Stands in for a transformers model class where only `from_pretrained` is used."""

    checks_load_report = True

    def __init__(self, model_class: Any) -> None:
        self._model_class = model_class

    def from_pretrained(self, model_dir: Any) -> Any:
        """The model. Raises `IncompleteWeights` naming what is missing, unexpected in shape, or damaged."""
        from safetensors import SafetensorError

        try:
            model, report = self._model_class.from_pretrained(model_dir, output_loading_info=True)
        except SafetensorError as error:
            raise IncompleteWeights(f"its weights are damaged: {error}") from error
        wrong = {kind: sorted(map(str, report.get(kind) or ())) for kind in ("missing_keys", "mismatched_keys")}
        listed = [f"{kind} {', '.join(keys[:3])} ({len(keys)} in all)" for kind, keys in wrong.items() if keys]
        if listed:
            raise IncompleteWeights("; ".join(listed))
        return model


PATCH = Patch(
    name="glmocr_load_report",
    target="glmocr",
    why="a layout checkpoint with missing weights would load with random ones",
    needed=needed,
    apply=apply,
    verify=verify,
)
