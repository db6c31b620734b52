"""Which regions are read, and with which of GLM-OCR's own prompts.

The mapping follows `pipeline.layout.label_task_mapping` and `pipeline.page_loader.task_prompt_mapping` of glmocr
0.1.5, with one difference: what glmocr abandons (headers, footers, page numbers, footnotes, asides, references) is
read as text here.
"""

from enum import StrEnum

from handler.schema import Label


class Task(StrEnum):
    """A prompt the model was trained on. Free-form prompts are not: they make it loop."""

    TEXT = "Text Recognition:"
    TABLE = "Table Recognition:"
    FORMULA = "Formula Recognition:"


FIGURES = frozenset({Label.CHART, Label.FOOTER_IMAGE, Label.HEADER_IMAGE, Label.IMAGE})
"""Pictures. They are read, as text, only where the job asks for `read_figures`; a picture need not hold any text."""

_TASKS = {Label.TABLE: Task.TABLE, Label.DISPLAY_FORMULA: Task.FORMULA, Label.INLINE_FORMULA: Task.FORMULA}


def task_of(label: Label, *, read_figures: bool) -> Task | None:
    """The prompt for a region; None for a picture that is not to be read."""
    if label in FIGURES and not read_figures:
        return None
    return _TASKS.get(label, Task.TEXT)
