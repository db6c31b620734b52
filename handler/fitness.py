"""The boot gates: what must be true before this worker takes a job. Each says what to do when it is not.

A gate looks at facts that were gathered before, and raises `GateError` or returns a word for the boot table. The
golden page is the last one: it is the only proof against what nobody knows of yet.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from handler.engine.api import EngineFacts, EngineName
from handler.engine.gpu import Gpu
from handler.errors import GateError
from handler.schema import JsonValue

log = logging.getLogger(__name__)

INPUT_MARGIN = 64
"""Tokens the engine may keep back for itself; SGLang 0.5.17-0.5.23 keep 6."""
SMALLEST_CONTEXT = 8192
"""Tokens: the largest crop (about 6,000) and room for its answer."""
ENGINE_MEMORY_MIB = 2048
"""What GLM-OCR's weights alone take of a GPU (2.65 GB)."""
FREE_MEMORY_MIB = 1024
"""What must be left for image preprocessing and prefill once everything is loaded."""
NEXTN = (3, 1, 4)
"""Steps, top-k and draft tokens of the `+nextn` profiles."""

Gate = Callable[[], str | Awaitable[str]]


@dataclass(frozen=True, slots=True)
class GateReport:
    """One line of the boot table."""

    name: str
    seconds: float
    found: str


def model_served(facts: EngineFacts, wanted: str) -> str:
    """The engine serves the model that requests will name: SGLang takes any name and answers with what it has."""
    if facts.name is EngineName.SGLANG and facts.model != wanted:
        raise GateError(
            f"the engine serves {facts.model!r}, ENGINE_MODEL is {wanted!r}: "
            "remove --served-model-name from SGLANG_EXTRA_ARGS or set ENGINE_MODEL"
        )
    return facts.model or "not told"


def pool_holds_context(facts: EngineFacts) -> str:
    """KV pool >= context: a request that fits the window but not the pool is cut without a word."""
    if facts.kv_pool_tokens is None or facts.context_length is None:
        if facts.name is EngineName.SGLANG:
            raise GateError("the engine does not tell its KV pool and context; it is not the server this worker knows")
        return "not told"
    if facts.kv_pool_tokens < facts.context_length:
        raise GateError(
            f"the KV pool holds {facts.kv_pool_tokens} tokens, less than the context of {facts.context_length}: longer "
            "answers would be cut silently. Remove --max-total-tokens, raise --mem-fraction-static, lower "
            "--context-length, or choose a GPU with more memory"
        )
    return f"{facts.kv_pool_tokens} >= {facts.context_length} tokens"


def input_fits(facts: EngineFacts) -> str:
    """The engine takes prompts as long as its context, and its context holds the largest crop and an answer."""
    if facts.context_length is not None and facts.name is EngineName.SGLANG:
        if facts.context_length < SMALLEST_CONTEXT:
            raise GateError(
                f"the context of {facts.context_length} tokens is too short for a dense region; "
                f"raise --context-length to {SMALLEST_CONTEXT} or more"
            )
        if (facts.max_input_tokens or 0) < facts.context_length - INPUT_MARGIN:
            raise GateError(
                f"the engine takes prompts of {facts.max_input_tokens} tokens only, in a context of "
                f"{facts.context_length}; see its max_req_input_len, and give the KV pool more memory"
            )
    return "not told" if facts.max_input_tokens is None else f"{facts.max_input_tokens} tokens"


def speculation_as_wanted(facts: EngineFacts, wanted: bool) -> str:
    """Speculative decoding runs with the four settings of the profile, or not at all."""
    if wanted and facts.speculation != NEXTN:
        raise GateError(
            f"the profile asks for NEXTN with {NEXTN}, the engine runs {facts.speculation or 'without speculation'}: "
            "remove --speculative-* from SGLANG_EXTRA_ARGS, or +nextn from SGLANG_PROFILE"
        )
    return f"NEXTN {facts.speculation}" if facts.speculation else "off"


def gpu_in_use(gpus: Sequence[Gpu]) -> str:
    """The engine sits on the GPU, and leaves room for the rest. `gpus`: as they are after everything was loaded."""
    if not gpus:
        raise GateError("no NVIDIA GPU is visible any more; the host lost it: let the platform replace the worker")
    for gpu in gpus:
        if gpu.memory_total is None or gpu.memory_free is None:
            continue
        used = gpu.memory_total - gpu.memory_free
        if used < ENGINE_MEMORY_MIB:
            raise GateError(
                f"{gpu.name} {gpu.index} holds only {used} MiB after loading: the engine runs on the CPU. Its CUDA and "
                f"driver {gpu.driver} do not match: allow only newer CUDA versions for the endpoint"
            )
        if gpu.memory_free < FREE_MEMORY_MIB:
            raise GateError(
                f"{gpu.name} {gpu.index} has {gpu.memory_free} MiB left after loading, {FREE_MEMORY_MIB} are needed: "
                "lower --mem-fraction-static in SGLANG_EXTRA_ARGS"
            )
    return ", ".join(f"{gpu.name}: {gpu.memory_free} MiB free" for gpu in gpus)


class Start(Protocol):
    """How the engine was started; `handler.engine.launch.EngineBoot`."""

    @property
    def wants_nextn(self) -> bool:
        """Whether its profile turns speculative decoding on."""

    @property
    def needs_gpu(self) -> bool:
        """Whether it must sit on a GPU of this machine."""

    def gpus(self) -> Sequence[Gpu]:
        """The GPUs it may use, as they are now."""


def engine_gates(facts: EngineFacts, model: str, start: Start) -> list[tuple[str, Gate]]:
    """The gates of an engine that has just come up, in order."""
    gates: list[tuple[str, Gate]] = [
        ("model", lambda: model_served(facts, model)),
        ("KV pool", lambda: pool_holds_context(facts)),
        ("input", lambda: input_fits(facts)),
        ("speculation", lambda: speculation_as_wanted(facts, start.wants_nextn)),
    ]
    if start.needs_gpu:
        gates.append(("GPU", lambda: gpu_in_use(start.gpus())))
    return gates


async def run(gates: Sequence[tuple[str, Gate]]) -> tuple[GateReport, ...]:
    """Run the gates in order. Raises the first `GateError`, its gate's name in front."""
    reports = []
    for name, gate in gates:
        begun = time.monotonic()
        try:
            found = gate()
            if not isinstance(found, str):
                found = await found
        except GateError as error:
            raise GateError(f"gate {name}: {error.message}", gate=name) from error
        reports.append(GateReport(name, round(time.monotonic() - begun, 3), found))
        log.info("gate %-12s %6.2f s  %s", name, reports[-1].seconds, found)
    return tuple(reports)


def as_json(reports: Sequence[GateReport]) -> dict[str, JsonValue]:
    """For `debug.boot.gates`."""
    return {report.name: {"seconds": report.seconds, "found": report.found} for report in reports}
