"""How many answer tokens a region gets: what it can need by its kind and size, then all there is.

The engine sets min(`max_tokens`, 4096) tokens of its KV pool aside for every request that it admits (measured on
SGLang 0.5.23), so what is asked for but not used keeps other regions waiting. The first budget is therefore near to
what the picture can hold; the second, asked for only when the first did not do, is the whole ceiling.
"""

from dataclasses import dataclass

from handler.recognition.prompts import Task

PATCH = 28
"""Pixels per side of one image token: patches of 14 px, merged 2 x 2."""
PROMPT_TOKENS = 64
"""Room left for the prompt's words, the chat template and the six tokens SGLang keeps back. Generous."""
SMALLEST_BUDGET = 16


@dataclass(frozen=True, slots=True)
class _Need:
    """Answer tokens that a kind of region can need: `base` + `rate` x its image tokens."""

    base: int
    rate: float


_NEEDS = {Task.TEXT: _Need(64, 2.5), Task.TABLE: _Need(256, 2.5), Task.FORMULA: _Need(512, 10.0)}
"""From 372 regions the published model read (a report of 41 pages at 200 dpi, a page of a building code, code, a
bank's table, handwriting): text needs at most 2.4 tokens per image token beyond 45, a table 2.0, a formula 17 where it
is tiny. Tokens were estimated from above: one per 4 Latin letters, per digit, per other character, per line break.
Little is added to that: on a pool of 65536, another 320 tokens per text region cost a tenth of the throughput."""


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """`max_tokens` of the first request for a picture, and of the second when the first came back `length`."""

    first: int
    second: int

    @property
    def has_more(self) -> bool:
        """Whether a second request can bring more than the first."""
        return self.second > self.first


def image_tokens(width: int, height: int) -> int:
    """Prompt tokens of a picture of `width` x `height` pixels."""
    return max(1, -(-width // PATCH)) * max(1, -(-height // PATCH))


def token_budget(task: Task, width: int, height: int, *, context: int | None, ceiling: int) -> TokenBudget:
    """The budgets for a picture of `width` x `height` pixels.

    `context`: tokens of prompt and answer together, None where the engine does not say. `ceiling`: most answer tokens.
    The engine refuses a request whose prompt and `max_tokens` exceed the context, so both stay within what is left;
    where nothing is left, they are the smallest and the engine's refusal becomes the region's status.
    """
    picture = image_tokens(width, height)
    left = ceiling if context is None else min(ceiling, context - picture - PROMPT_TOKENS)
    most = max(SMALLEST_BUDGET, left)
    need = _NEEDS[task]
    return TokenBudget(first=min(most, round(need.base + need.rate * picture)), second=most)
