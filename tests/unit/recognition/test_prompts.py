from pathlib import Path

import glmocr
import pytest
import yaml

from handler.recognition.prompts import FIGURES, Task, task_of
from handler.schema import Label

STOCK = yaml.safe_load((Path(glmocr.__file__).parent / "config.yaml").read_text())["pipeline"]
STOCK_TASKS = {label: task for task, labels in STOCK["layout"]["label_task_mapping"].items() for label in labels}


@pytest.mark.parametrize("label", [label for label, task in STOCK_TASKS.items() if task not in ("skip", "abandon")])
def test_what_glmocr_reads_is_read_with_the_same_prompt(label: str) -> None:
    prompt = STOCK["page_loader"]["task_prompt_mapping"][STOCK_TASKS[label]]
    task = task_of(Label(label), read_figures=False)
    assert task is not None
    assert task.value == prompt


@pytest.mark.parametrize("label", ["header", "footer", "number", "footnote", "aside_text", "reference"])
def test_what_glmocr_abandons_is_read_as_text(label: str) -> None:
    assert STOCK_TASKS[label] == "abandon"
    assert task_of(Label(label), read_figures=False) is Task.TEXT


@pytest.mark.parametrize("label", sorted(FIGURES))
def test_pictures_are_read_on_request_only(label: Label) -> None:
    assert STOCK_TASKS[label.value] in ("skip", "abandon")
    assert task_of(label, read_figures=False) is None
    assert task_of(label, read_figures=True) is Task.TEXT


def test_every_label_of_the_layout_model_is_known() -> None:
    assert set(STOCK["layout"]["id2label"].values()) == {label.value for label in Label}
