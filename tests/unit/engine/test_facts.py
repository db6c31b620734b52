import json

import pytest

from handler.engine.api import EngineFacts, EngineLoad, EngineName
from handler.engine.facts import facts_from, load_from_loads, load_from_metrics
from tests.unit.engine.conftest import SAMPLES


def test_the_load_is_read_from_the_recorded_metrics() -> None:
    assert load_from_metrics((SAMPLES / "metrics.txt").read_text()) == EngineLoad(0, 0, 0.0, 0)
    assert load_from_metrics((SAMPLES / "metrics_after_retraction.txt").read_text()) == EngineLoad(0, 0, 0.0, 2)


def test_the_load_of_several_ranks_is_their_sum_and_the_fullest_pool() -> None:
    text = (
        'sglang:num_running_reqs{dp_rank="0"} 3.0\nsglang:num_running_reqs{dp_rank="1"} 4.0\n'
        'sglang:num_queue_reqs{dp_rank="0"} 1.0\nsglang:token_usage{dp_rank="0"} 0.25\n'
        'sglang:token_usage{dp_rank="1"} 0.5\n'
    )
    assert load_from_metrics(text) == EngineLoad(running=7, queued=1, pool_use=0.5, retractions=0)


@pytest.mark.parametrize(
    "text", ["sglang:num_running_reqs NaN\n", "", "up 1.0\n", "sglang:num_running_reqs{ 3\n", "<html></html>"]
)
def test_metrics_of_another_kind_are_no_load(text: str) -> None:
    assert load_from_metrics(text) is None


def test_the_load_is_read_from_the_recorded_loads() -> None:
    recorded = json.loads((SAMPLES / "v1_loads.json").read_text())
    assert load_from_loads(recorded) == EngineLoad(running=0, queued=0, pool_use=0.0)
    recorded["loads"].append({"num_running_reqs": 5, "num_waiting_reqs": 2, "token_usage": 0.7})
    assert load_from_loads(recorded) == EngineLoad(running=5, queued=2, pool_use=0.7)


def test_numbers_that_are_none_count_as_not_told() -> None:
    text = "sglang:num_running_reqs 1.0\nsglang:num_queue_reqs NaN\nsglang:token_usage NaN\n"
    assert load_from_metrics(text) == EngineLoad(running=1, queued=0)
    ranks = [{"num_running_reqs": 1, "token_usage": None}, {"num_running_reqs": float("inf"), "token_usage": "full"}]
    assert load_from_loads({"loads": ranks}) == EngineLoad(running=1, queued=0)


def test_a_server_of_several_models_is_described_by_the_one_that_is_asked() -> None:
    models = {"data": [{"id": "llama", "max_model_len": 4096}, {"id": "ocr", "max_model_len": 32768}]}
    facts = facts_from(EngineName.EXTERNAL, None, models, "ocr")
    assert (facts.model, facts.context_length) == ("ocr", 32768)
    assert facts_from(EngineName.EXTERNAL, None, models, "other").model == "llama"


@pytest.mark.parametrize("answer", [None, [], {}, {"loads": []}, {"loads": "no"}])
def test_loads_of_another_kind_are_no_load(answer: object) -> None:
    assert load_from_loads(answer) is None


def test_slots_are_summed_over_ranks_and_odd_answers_leave_facts_empty() -> None:
    info = {"internal_states": [{"effective_max_running_requests_per_dp": 64}] * 2, "version": "0.5.17"}
    assert facts_from(EngineName.SGLANG, info, {"data": []}, "ocr").slots == 128
    assert facts_from(EngineName.SGLANG, {"max_running_requests": 8}, None, "ocr").slots == 8
    assert facts_from(EngineName.EXTERNAL, "no", ["no"], "ocr") == EngineFacts(name=EngineName.EXTERNAL)
    odd = {"context_length": None, "max_total_num_tokens": "x"}
    assert facts_from(EngineName.SGLANG, odd, {}, "ocr") == EngineFacts(name=EngineName.SGLANG)
