"""From a region's picture to its text: what is asked, how often, and which answer is kept."""

from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass, field, replace

from handler.documents.failures import RenderFailure
from handler.documents.page import Crop, Cut
from handler.engine.api import Engine, EngineRequest
from handler.recognition.asking import LENGTH, Asker, Patience
from handler.recognition.budget import token_budget
from handler.recognition.prompts import task_of
from handler.recognition.reading import Answer, Reading, chosen
from handler.recognition.remembering import Asking, KnownAnswers, RememberingAsker
from handler.recognition.repetition import find_loop
from handler.recognition.slots import RegionSlots
from handler.recognition.verdict import Asked, is_echo, joined, judge
from handler.schema import Label, Reason, RegionStatus

SHORTER = 0.9
"""A second answer below this share of the first's length is no improvement on it."""


NOT_ASKED_FOR = Reading("", RegionStatus.SKIPPED, reason=Reason.FIGURE_NOT_READ, message="figures were not asked for")
NOT_CUT_OUT = Reading("", RegionStatus.FAILED, reason=Reason.CROP_FAILED, message="the region could not be cut out")


@dataclass(frozen=True, slots=True)
class ReadingPolicy:
    """How regions are read."""

    ceiling: int = 32768
    """Answer tokens per region where the job names no ceiling."""
    repetition_penalty: float = 1.1
    """glmocr's own value for this model."""
    second_penalty: float = 1.2
    """For the changed crop, when the first answer repeated itself."""
    patience: Patience = field(default_factory=Patience)


class Reader:
    """Reads regions. Shared by all jobs of the process."""

    def __init__(
        self, engine: Engine, policy: ReadingPolicy, slots: RegionSlots, *, asker: Asking | None = None
    ) -> None:
        self._policy = policy
        self._asker: Asking = asker or Asker(engine, slots, policy.patience)
        limits = (engine.facts.context_length, engine.facts.kv_pool_tokens)
        self._context = min((limit for limit in limits if limit), default=None)

    def remembering(self, answers: KnownAnswers) -> "Reader":
        """The same reader, which asks the engine for nothing that `answers` knows."""
        reader = copy(self)
        reader._asker = RememberingAsker(self._asker, answers)
        return reader

    async def read(
        self,
        region: Label,
        cut: Cut,
        recut: Callable[[], Awaitable[Cut]],
        *,
        ceiling: int | None,
        read_figures: bool,
        suspected: bool = False,
    ) -> Reading:
        """Read one region. `recut` cuts it again, changed; `ceiling` None means the policy's; `suspected`: only its ink
        suggests that there may be text.

        Raises `EngineUnavailable` when the engine is gone. All other trouble is in the reading.
        """
        task = task_of(region, read_figures=read_figures)
        if task is None:
            return NOT_ASKED_FOR
        if not cut.crops:
            return NOT_CUT_OUT
        most = self._policy.ceiling if ceiling is None else ceiling
        asked = Asked(region, task, cut.ink, cut.contrast, suspected)
        reading = await self._read_cut(cut, asked, most, self._policy.repetition_penalty)
        if reading.reason is not Reason.REPETITION:
            return reading
        try:
            changed = await recut()
        except RenderFailure:
            return reading
        if not changed.crops:
            return reading
        second = await self._read_cut(changed, asked, most, self._policy.second_penalty)
        return _better(reading, second)

    async def _read_cut(self, cut: Cut, asked: Asked, ceiling: int, penalty: float) -> Reading:
        readings = [judge(await self._read_crop(crop, asked, ceiling, penalty), asked) for crop in cut.crops]
        side_by_side = cut.crops[0].width >= cut.crops[0].height
        return joined(readings, " " if side_by_side else "\n")

    async def _read_crop(self, crop: Crop, asked: Asked, ceiling: int, penalty: float) -> Answer:
        """One picture's answer: asked once more when it says nothing, and once more with all the room there is."""
        budget = token_budget(asked.task, crop.width, crop.height, context=self._context, ceiling=ceiling)
        request = EngineRequest(asked.task.value, crop.jpeg, budget.first, penalty)
        answer = await self._asker.ask(request)
        if answer.failure is None and _says_nothing(answer, asked):
            again = await self._asker.ask(request)
            answer = chosen(again, (answer, again))
        if _needs_more_room(answer) and budget.has_more:
            more = await self._asker.ask(replace(request, max_tokens=budget.second))
            answer = _fuller(answer, more)
        return answer


def _says_nothing(answer: Answer, asked: Asked) -> bool:
    return asked.must_have_text and (not answer.text.strip() or is_echo(answer.text))


def _needs_more_room(answer: Answer) -> bool:
    """A loop would only fill the room."""
    return answer.failure is None and answer.finish_reason == LENGTH and not find_loop(answer.text, ended=False)


def _fuller(first: Answer, more: Answer) -> Answer:
    """The answer with more room, unless it brings less than the first one did."""
    if more.failure is None and len(more.text) >= SHORTER * len(first.text):
        return chosen(more, (first, more))
    why = more.message or "it was shorter"
    kept = replace(first, message=f"the answer reached the token limit; asked again with more room: {why}")
    return chosen(kept, (first, more))


def _better(first: Reading, second: Reading) -> Reading:
    """Of a repetitive reading and the one of the changed crop, the one that says more of what is there."""
    if second.reason is Reason.REPETITION:
        wins = second.status is RegionStatus.OK and first.status is not RegionStatus.OK
    else:
        readable = second.status in (RegionStatus.OK, RegionStatus.TRUNCATED)
        wins = readable and 2 * len(second.text) >= _distinct_length(first)
    return chosen(second if wins else first, (first, second))


def _distinct_length(reading: Reading) -> int:
    ended, begun_anew = reading.finish_reason != LENGTH, reading.retractions > 0
    loop = find_loop(reading.text, ended=ended, begun_anew=begun_anew)
    return len(reading.text) - (loop.surplus if loop else 0)
