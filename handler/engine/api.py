"""What the rest of the worker knows about a text engine: requests, replies, failures, load."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class EngineName(StrEnum):
    """The engines a worker can run on."""

    SGLANG = "sglang"
    RAPIDOCR = "rapidocr"
    TRANSFORMERS = "transformers"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """One picture and one of GLM-OCR's own prompts."""

    prompt: str
    jpeg: bytes = field(repr=False)
    max_tokens: int
    repetition_penalty: float | None = None


@dataclass(frozen=True, slots=True)
class EngineReply:
    """One answer, as the engine gave it."""

    text: str
    finish_reason: str
    """The engine's word: stop, length, abort."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    retractions: int = 0
    """How often the engine threw it back to its queue and began it anew; 0 where the engine does not tell."""


class EngineFailure(Exception):
    """A request that brought no answer."""


class EngineRefused(EngineFailure):
    """4xx other than 408 and 429: the same request will be refused again."""


class EngineBusy(EngineFailure):
    """408, 429, 5xx or a broken connection: worth repeating within the deadline."""


class EngineTimeout(EngineFailure):
    """No answer within the request's deadline."""


class EngineGone(EngineFailure):
    """The engine's process is dead or hangs, or nothing listens at its address any more."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the engine says about itself. None where it does not say."""

    name: EngineName
    version: str | None = None
    model: str | None = None
    context_length: int | None = None
    """Tokens of prompt and answer together."""
    kv_pool_tokens: int | None = None
    max_input_tokens: int | None = None
    slots: int | None = None
    """Most requests it runs at once."""
    speculation: tuple[int, int, int] | None = None
    """Steps, top-k and draft tokens of speculative decoding; None where it is off."""


@dataclass(frozen=True, slots=True)
class EngineLoad:
    """The engine's own counters at one moment."""

    running: int
    queued: int
    pool_use: float | None = None
    """Share of the KV pool in use, 0 to 1."""
    retractions: int = 0
    """Requests thrown back to the queue since the start."""


class Engine(Protocol):
    """A text engine that is up. Cancelling a call aborts the request in the engine."""

    @property
    def facts(self) -> EngineFacts:
        """As read when it came up."""

    async def complete(self, request: EngineRequest) -> EngineReply:
        """One answer, or one of the `EngineFailure`s."""

    async def load(self) -> EngineLoad | None:
        """The load now; None where the engine does not tell."""

    def alive(self) -> bool:
        """False once its process has ended or it was found to hang."""
