"""Answers that are known already, from an attempt at the same document whose worker went away."""

from dataclasses import dataclass
from typing import Protocol

from handler.engine.api import EngineRequest
from handler.recognition.reading import Answer


class Asking(Protocol):
    """Asks for one picture."""

    async def ask(self, request: EngineRequest) -> Answer:
        """One answer. Raises `EngineUnavailable` when the engine is gone."""


class KnownAnswers(Protocol):
    """A memory of answers that outlives the worker."""

    def recall(self, request: EngineRequest) -> Answer | None:
        """What was answered to this request; every answer is given once."""

    def remember(self, request: EngineRequest, answer: Answer) -> None:
        """Keep an answer."""


@dataclass(frozen=True)
class RememberingAsker:
    """Asks only for what is not known, and makes it known. Failures are not kept."""

    asker: Asking
    answers: KnownAnswers

    async def ask(self, request: EngineRequest) -> Answer:
        """One answer, as `asker` would give it."""
        answer = self.answers.recall(request)
        if answer is None:
            answer = await self.asker.ask(request)
            if answer.failure is None:
                self.answers.remember(request, answer)
        return answer
