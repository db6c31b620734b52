"""The time that the simulated GPU alone needs for a scenario's documents: what every side is measured against.

All regions are queued at the start, in the order of the documents. One yardstick for all sides: taken from a side's own
order of sending, it would be shorter for whoever orders better, and hide just that. So a side may be above 1.
"""

import json
from functools import cache

from bench.corpus.documents import MARKS, Corpus
from bench.corpus.marks import PAGE_HEIGHT, PAGE_WIDTH
from bench.corpus.pages import Region
from bench.detector import TASKS, box_of
from bench.scenarios import Scenario
from bench.simulator.answers import PROMPT_OVERHEAD_TOKENS, answer_tokens, image_tokens
from bench.simulator.scheduler import CONTEXT, GPUS, Request, ideal_makespan
from handler.documents.crops import engine_size
from handler.documents.scale import page_scale
from handler.recognition.budget import token_budget
from handler.recognition.prompts import task_of
from handler.schema import Label

DPI = 200


@cache
def ideal_s(scenario: Scenario, corpus: Corpus) -> float:
    """Seconds; 0 on the free GPU."""
    gpu = GPUS[scenario.gpu].slowed(scenario.slowed)
    return ideal_makespan(gpu, requests(scenario, corpus), pool=scenario.pool)


def requests(scenario: Scenario, corpus: Corpus) -> list[Request]:
    """What is asked of the engine, with this worker's budgets."""
    manifest = json.loads(corpus.manifest.read_text())
    regions = (region for name in scenario.documents for mark in MARKS[name] for region in manifest[str(mark)])
    read = (Region(region["label"], tuple(region["box"])) for region in regions if TASKS.get(region["label"]) != "skip")
    return [_request(number, region) for number, region in enumerate(read)]


def _request(number: int, region: Region) -> Request:
    scale = page_scale(PAGE_WIDTH, PAGE_HEIGHT, DPI, 10**8)
    box = box_of(region, scale.width, scale.height)
    size = engine_size(box.width, box.height)
    task = task_of(Label(region.label), read_figures=False)
    assert task is not None
    budget = token_budget(task, *size, context=CONTEXT, ceiling=CONTEXT)
    answer = answer_tokens(region.label == "table", *size)
    return Request(number, image_tokens(*size) + PROMPT_OVERHEAD_TOKENS, answer, budget.first)
