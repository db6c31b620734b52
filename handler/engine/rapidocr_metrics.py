"""The embedded engine's counters, under SGLang's names."""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge


@dataclass(frozen=True, slots=True)
class Load:
    """What the engine does at one moment."""

    running: int
    queued: int
    tokens: int
    """Prompt tokens of the running requests."""
    pool: int

    @property
    def token_usage(self) -> float:
        """Share of the pool in use, 0 to 1."""
        return min(1.0, self.tokens / self.pool)


class Metrics:
    """A registry of its own, so that several servers can live in one process (tests)."""

    def __init__(self, model: str, context: int, load: Callable[[], Load]) -> None:
        self.registry = CollectorRegistry()
        self._labels = {"model_name": model}
        self._gauge("num_running_reqs", "The number of running requests.", lambda: load().running)
        self._gauge("num_queue_reqs", "The number of requests in the waiting queue.", lambda: load().queued)
        self._gauge("token_usage", "The token usage.", lambda: load().token_usage)
        self._gauge("num_used_tokens", "The number of used tokens.", lambda: load().tokens)
        self._gauge("max_total_num_tokens", "Maximum total number of tokens in the pool.", lambda: load().pool)
        self._gauge("context_len", "Maximum context length.", lambda: context)
        self.aborted = self._counter("num_aborted_requests", "Number of requests aborted.")
        self._requests = self._counter("num_requests", "Number of requests processed.")
        self._prompt = self._counter("prompt_tokens", "Number of prefill tokens processed.")
        self._generated = self._counter("generation_tokens", "Number of generation tokens processed.")

    def finished(self, prompt_tokens: int, completion_tokens: int) -> None:
        """Count one answered request."""
        self._requests.inc()
        self._prompt.inc(prompt_tokens)
        self._generated.inc(completion_tokens)

    def _gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        gauge = Gauge(f"sglang:{name}", text, list(self._labels), registry=self.registry)
        gauge.labels(**self._labels).set_function(value)

    def _counter(self, name: str, text: str) -> Counter:
        counter = Counter(f"sglang:{name}", text, list(self._labels), registry=self.registry)
        return counter.labels(**self._labels)
