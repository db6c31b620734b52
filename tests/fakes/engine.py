"""An engine whose answers are a script or a function."""

import asyncio
import random
from collections.abc import Callable

from handler.engine.api import EngineFacts, EngineFailure, EngineLoad, EngineName, EngineReply, EngineRequest

Said = EngineReply | EngineFailure | ValueError
"""What the engine does with a request: answer, fail, or make us fail in a way nobody foresaw."""


class FakeEngine:
    """Answers each request with what `answer` gives for it, and remembers the requests."""

    def __init__(
        self,
        answer: Callable[[EngineRequest], Said],
        *,
        context: int | None = 32768,
        mood: random.Random | None = None,
    ) -> None:
        self.facts = EngineFacts(EngineName.EXTERNAL, context_length=context, slots=8)
        self.requests: list[EngineRequest] = []
        self.is_alive = True
        self._answer = answer
        self._mood = mood

    async def complete(self, request: EngineRequest) -> EngineReply:
        self.requests.append(request)
        for _ in range(self._mood.randrange(20) if self._mood else 0):
            await asyncio.sleep(0)
        said = self._answer(request)
        if isinstance(said, Exception):
            raise said
        return said

    async def load(self) -> EngineLoad | None:
        return None

    def alive(self) -> bool:
        return self.is_alive


def scripted(*script: Said, context: int | None = 32768) -> FakeEngine:
    """An engine that gives these answers in order and fails the test when it is asked for more."""
    said = iter(script)
    return FakeEngine(lambda _: next(said), context=context)


def stop(text: str) -> EngineReply:
    """An answer that ended by itself."""
    return EngineReply(text, "stop", prompt_tokens=10, completion_tokens=len(text))


def length(text: str) -> EngineReply:
    """An answer that reached `max_tokens`."""
    return EngineReply(text, "length", prompt_tokens=10, completion_tokens=len(text))


def abort(text: str = "") -> EngineReply:
    """An answer that the engine broke off."""
    return EngineReply(text, "abort", prompt_tokens=10)


class Clock:
    """Time that passes only while someone sleeps, and all at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
