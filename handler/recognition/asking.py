"""One request to the engine, repeated while the engine is busy, and what came of it."""

import asyncio
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from handler.engine.api import (
    Engine,
    EngineBusy,
    EngineFailure,
    EngineGone,
    EngineRefused,
    EngineReply,
    EngineRequest,
    EngineTimeout,
)
from handler.errors import EngineUnavailable
from handler.logs import current_job
from handler.recognition.reading import Answer, chosen
from handler.recognition.slots import RegionSlots
from handler.schema import Reason

log = logging.getLogger(__name__)

ABORT = "abort"
LENGTH = "length"

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Patience:
    """How a busy engine is waited for: pauses that double, with jitter, within a deadline. Seconds."""

    deadline_s: float = 120.0
    first_pause_s: float = 0.5
    longest_pause_s: float = 10.0


class Asker:
    """Sends requests. `clock`: monotonic seconds; `jitter`: 0 to 1."""

    def __init__(
        self,
        engine: Engine,
        slots: RegionSlots,
        patience: Patience,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._engine = engine
        self._slots = slots
        self._patience = patience
        self._clock = clock
        self._sleep = sleep
        self._jitter = jitter

    async def ask(self, request: EngineRequest) -> Answer:
        """One answer. Raises `EngineUnavailable` when the engine is gone; every other trouble is in the answer."""
        deadline = self._clock() + self._patience.deadline_s
        pause = self._patience.first_pause_s
        answers: list[Answer] = []
        while True:
            answer, worth_repeating = await self._try(request)
            answers.append(answer)
            wait = pause * (1 + self._jitter()) / 2
            if not worth_repeating or self._clock() + wait > deadline:
                return chosen(_fullest(answers), answers)
            await self._sleep(wait)
            pause = min(pause * 2, self._patience.longest_pause_s)

    async def _try(self, request: EngineRequest) -> tuple[Answer, bool]:
        """The answer to one request, and whether a repeated request may bring a better one."""
        try:
            async with self._slots.slot(current_job(), request.max_tokens):
                reply = await self._engine.complete(request)
        except EngineGone as error:
            raise EngineUnavailable(f"The text engine is gone: {error}") from error
        except EngineRefused as error:
            return Answer(failure=Reason.ENGINE_REFUSED, message=str(error), requests=1), False
        except EngineTimeout as error:
            return Answer(failure=Reason.ENGINE_TIMEOUT, message=str(error), requests=1), False
        except EngineFailure as error:
            if not self._engine.alive():
                raise EngineUnavailable(f"The text engine is gone: {error}") from error
            answer = Answer(failure=Reason.ENGINE_ERROR, message=str(error), requests=1)
            return answer, isinstance(error, EngineBusy)
        if reply.retractions:
            log.info(
                "the engine began an answer of %d tokens anew, %d times; it is checked for loops more strictly",
                reply.completion_tokens,
                reply.retractions,
            )
        return _answer(reply), reply.finish_reason == ABORT


def _fullest(answers: Sequence[Answer]) -> Answer:
    """The last answer; when it failed, the one that said most before that, a later one if they say the same."""
    last = answers[-1]
    return last if last.failure is None else max(reversed(answers), key=lambda answer: len(answer.text))


def _answer(reply: EngineReply) -> Answer:
    aborted = reply.finish_reason == ABORT
    return Answer(
        text=_LONE_SURROGATE.sub("\ufffd", reply.text),
        finish_reason=reply.finish_reason,
        failure=Reason.ABORTED if aborted else None,
        message="the engine broke the answer off" if aborted else None,
        requests=1,
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
        retractions=reply.retractions,
    )
