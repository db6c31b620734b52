"""What asking for one picture, and reading one region, brought."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from handler.schema import Reason, RegionStatus


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine said to one picture, or why it said nothing. Both for an answer it broke off."""

    text: str = ""
    finish_reason: str | None = None
    failure: Reason | None = None
    message: str | None = None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    superseded: tuple[str, ...] = ()
    """What was said before and set aside."""
    retractions: int = 0
    """How often the engine began this very answer anew."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of one region and what is known about it. `text` is exactly what the engine said."""

    text: str
    status: RegionStatus
    finish_reason: str | None = None
    reason: Reason | None = None
    message: str | None = None
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    superseded: tuple[str, ...] = ()
    """What was said before and set aside."""
    retractions: int = 0
    """How often the engine began this very answer anew."""


Said = TypeVar("Said", Answer, Reading)


def chosen(kept: Said, candidates: Sequence[Said]) -> Said:
    """`kept` with what all candidates, itself included, cost together, and with what the others said."""
    said = [each.text for each in candidates]
    said += [text for each in candidates for text in each.superseded]
    return replace(
        kept,
        requests=sum(each.requests for each in candidates),
        prompt_tokens=sum(each.prompt_tokens for each in candidates),
        completion_tokens=sum(each.completion_tokens for each in candidates),
        superseded=set_aside(kept.text, said),
    )


def set_aside(kept: str, texts: Iterable[str]) -> tuple[str, ...]:
    """Those of `texts` that hold something and stand neither in `kept` nor in a longer one of them, each once."""
    aside: list[str] = []
    for text in sorted(texts, key=len, reverse=True):
        if text.strip() and not any(text in other for other in (kept, *aside)):
            aside.append(text)
    return tuple(aside)
