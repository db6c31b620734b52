"""What an engine's own endpoints say, as values. No I/O."""

from collections.abc import Iterable
from math import isfinite, nan
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from handler.engine.api import EngineFacts, EngineLoad, EngineName

LOAD_METRICS = (
    "sglang:num_running_reqs",
    "sglang:num_queue_reqs",
    "sglang:token_usage",
    "sglang:num_retracted_requests_total",
)


def facts_from(name: EngineName, server_info: Any, models: Any, asked: str) -> EngineFacts:
    """From the JSON of `/server_info` and `/v1/models`; missing or odd answers leave facts empty.

    `asked`: what requests call the model; a server of several is described by that one.
    """
    info = server_info if isinstance(server_info, dict) else {}
    served = _served(models.get("data"), asked) if isinstance(models, dict) else {}
    states = info.get("internal_states")
    slots = [_number(s.get("effective_max_running_requests_per_dp")) for s in states or () if isinstance(s, dict)]
    model = served.get("id") or info.get("served_model_name")
    return EngineFacts(
        name=name,
        version=str(info["version"]) if info.get("version") else None,
        model=str(model) if model else None,
        context_length=_number(served.get("max_model_len")) or _number(info.get("context_length")),
        kv_pool_tokens=_number(info.get("max_total_num_tokens")),
        max_input_tokens=_number(info.get("max_req_input_len")),
        speculation=_speculation(info),
        slots=sum(n for n in slots if n) or _number(info.get("max_running_requests")),
    )


def load_from_metrics(text: str) -> EngineLoad | None:
    """From `/metrics` with SGLang's names, summed over data-parallel ranks; None where they are missing.

    `num_retracted_requests_total` is absent until the first retraction.
    """
    lines = "\n".join(line for line in text.splitlines() if line.startswith(LOAD_METRICS))
    seen: dict[str, list[float]] = {}
    try:
        for family in text_string_to_metric_families(lines + "\n"):
            for sample in family.samples:
                seen.setdefault(sample.name.removeprefix("sglang:"), []).append(sample.value)
    except ValueError:
        return None
    running = _number(sum(seen.get("num_running_reqs", (nan,))))
    if running is None:
        return None
    return EngineLoad(
        running=running,
        queued=_number(sum(seen.get("num_queue_reqs", ()))) or 0,
        pool_use=_fullest(seen.get("token_usage", ())),
        retractions=_number(sum(seen.get("num_retracted_requests_total", ()))) or 0,
    )


def load_from_loads(answer: Any) -> EngineLoad | None:
    """From the JSON of `/v1/loads`, summed over data-parallel ranks."""
    loads = answer.get("loads") if isinstance(answer, dict) else None
    ranks = [rank for rank in loads if isinstance(rank, dict)] if isinstance(loads, list) else []
    if not ranks:
        return None
    return EngineLoad(
        running=sum(_number(rank.get("num_running_reqs")) or 0 for rank in ranks),
        queued=sum(_number(rank.get("num_waiting_reqs")) or 0 for rank in ranks),
        pool_use=_fullest(rank.get("token_usage") for rank in ranks),
    )


def _fullest(shares: Iterable[Any]) -> float | None:
    """The largest share of a rank's pool in use; None where no rank tells."""
    told = [float(share) for share in shares if isinstance(share, int | float) and isfinite(share)]
    return max(told, default=None)


def _speculation(info: dict[str, Any]) -> tuple[int, int, int] | None:
    names = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    steps, topk, draft = (_number(info.get(name)) for name in names)
    if not info.get("speculative_algorithm") or steps is None or topk is None or draft is None:
        return None
    return steps, topk, draft


def _served(models: Any, asked: str) -> dict[str, Any]:
    listed = [model for model in models if isinstance(model, dict)] if isinstance(models, list) else []
    return next((model for model in listed if model.get("id") == asked), listed[0] if listed else {})


def _number(value: Any) -> int | None:
    finite = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    return int(value) if finite else None
