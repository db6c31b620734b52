"""What asking for one picture, and reading one region, brought."""

from collections.abc import Sequence
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


Costed = TypeVar("Costed", Answer, Reading)


def at_the_cost_of(kept: Costed, all_of_them: Sequence[Costed]) -> Costed:
    """`kept` with what all of them, itself included, cost together."""
    return replace(
        kept,
        requests=sum(each.requests for each in all_of_them),
        prompt_tokens=sum(each.prompt_tokens for each in all_of_them),
        completion_tokens=sum(each.completion_tokens for each in all_of_them),
    )
