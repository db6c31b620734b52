from collections import defaultdict
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.recognition.budget import PROMPT_TOKENS, SMALLEST_BUDGET, image_tokens, token_budget
from handler.recognition.prompts import Task
from tests.real_documents import RealRegion, all_regions, estimated_tokens, needs_real_documents

POOL = 32768
CLIP = 4096
RUNNING_SHARE = 0.7
IN_FLIGHT = 64


@pytest.mark.parametrize(
    ("width", "height", "tokens"), [(28, 28, 1), (280, 280, 100), (1652, 2324, 59 * 83), (29, 28, 2), (1, 1, 1)]
)
def test_a_picture_takes_one_token_per_28_by_28_pixels(width: int, height: int, tokens: int) -> None:
    assert image_tokens(width, height) == tokens


@given(
    st.sampled_from(Task), st.integers(1, 6000), st.integers(1, 6000), st.integers(512, 131072), st.integers(16, 131072)
)
def test_prompt_and_budget_stay_within_the_context(
    task: Task, width: int, height: int, context: int, ceiling: int
) -> None:
    budget = token_budget(task, width, height, context=context, ceiling=ceiling)
    assert SMALLEST_BUDGET <= budget.first <= budget.second <= max(ceiling, SMALLEST_BUDGET)
    if budget.second > SMALLEST_BUDGET:
        assert image_tokens(width, height) + PROMPT_TOKENS + budget.second <= context


def test_a_ceiling_as_large_as_the_context_does_not_fill_it() -> None:
    budget = token_budget(Task.TEXT, 1652, 2324, context=32768, ceiling=32768)
    assert budget.second == 32768 - 59 * 83 - PROMPT_TOKENS


def test_without_a_known_context_the_ceiling_is_all_there_is() -> None:
    assert token_budget(Task.TABLE, 560, 560, context=None, ceiling=8192).second == 8192


def test_a_low_ceiling_leaves_nothing_to_ask_for_again() -> None:
    assert not token_budget(Task.TEXT, 1000, 300, context=32768, ceiling=200).has_more
    assert token_budget(Task.TEXT, 1000, 300, context=32768, ceiling=8192).has_more


@needs_real_documents
def test_first_budgets_hold_what_the_published_model_said() -> None:
    fits: dict[Task, list[bool]] = defaultdict(list)
    for task, region in _read_regions():
        budget = token_budget(task, region.width, region.height, context=32768, ceiling=32768)
        fits[task].append(estimated_tokens(region.text) <= budget.first)
    for task, held in fits.items():
        print(f"{task.name.lower()}: {sum(held)} of {len(held)} region texts within the first budget")
        assert mean(held) >= 0.99
    together = [held for task in fits for held in fits[task]]
    assert 1 - mean(together) <= 0.02


@needs_real_documents
def test_budgets_let_more_requests_run_than_one_size_for_all() -> None:
    regions = list(_read_regions())
    ours = _peak_running(
        [
            (region, token_budget(task, region.width, region.height, context=POOL, ceiling=POOL).first)
            for task, region in regions
        ]
    )
    flat = _peak_running([(region, 8192) for _, region in regions])
    print(f"peak running on a pool of {POOL}: {ours} with our budgets, {flat} with 8192 for all")
    assert ours >= 2.5 * flat


def _read_regions() -> list[tuple[Task, RealRegion]]:
    tasks = {"text": Task.TEXT, "table": Task.TABLE, "formula": Task.FORMULA}
    return [(tasks[region.label], region) for region in all_regions() if region.label in tasks]


def _peak_running(requests: list[tuple[RealRegion, int]]) -> int:
    """Requests that SGLang's admission rule (measured on 0.5.23) lets run together, at most, `IN_FLIGHT` in flight.

    A new request needs its prompt and min(max_tokens, 4096); a running one keeps its prompt and 0.7 of that.
    """
    peak = 0
    for start in range(0, len(requests), IN_FLIGHT):
        taken = 0.0
        running = 0
        for region, max_tokens in requests[start : start + IN_FLIGHT]:
            prompt = image_tokens(region.width, region.height) + PROMPT_TOKENS
            if taken + prompt + min(max_tokens, CLIP) > POOL:
                break
            taken += prompt + RUNNING_SHARE * min(max_tokens, CLIP)
            running += 1
        peak = max(peak, running)
    return peak
