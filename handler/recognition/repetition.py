"""Loops in a model's answer: found and named, never cut.

A model that is stuck says the same thing until its tokens run out. A document may say the same thing many times as
well: rows of a form, a column of dashes. What tells them apart is how often, and whether the answer ended by itself.
An engine that throws a request back to its queue, for want of memory, begins it anew and may have forgotten what was
not to be repeated (SGLang 0.5.17: the history of the repetition penalty is empty then); such an answer is suspect
earlier.
"""

from dataclasses import dataclass

REACH = 80
"""Characters of the smallest loop that lie before the last place at which it is looked for."""
WINDOW = 4096
"""Characters looked back from there. It bounds the work: 11 visits per character, whatever the text; 52 for an answer
that was begun anew."""
LAST_WINDOW = 16384
"""Characters looked back from the end of the text, where a model that is stuck leaves its loop."""
PROBE = 24
"""Characters before the anchor that stand in the window once more, one turn earlier, if it lies in a loop that matters:
such a loop has at least `REACH` characters before its last anchor, and turns of at most a fortieth, or an eighth, of
its length. Looking for them first costs a hundredth of the search."""
SEED = 3
"""Turns within the window that are followed up in both directions."""


@dataclass(frozen=True, slots=True)
class Loop:
    """`text[start:end]` is one unit of `period` characters over and over; the last turn may be incomplete."""

    start: int
    end: int
    period: int

    @property
    def repeats(self) -> int:
        """Complete turns."""
        return (self.end - self.start) // self.period

    @property
    def surplus(self) -> int:
        """Characters that only repeat what stands before them."""
        return self.end - self.start - self.period


@dataclass(frozen=True, slots=True)
class Threshold:
    """From how many turns and characters on equal things are a loop."""

    repeats: int
    characters: int

    @property
    def step(self) -> int:
        """At every so many characters a loop is looked for, so that none of this size lies between two of them."""
        return self.characters - REACH

    def is_met(self, loop: Loop) -> bool:
        """Whether the loop is one."""
        return loop.repeats >= self.repeats and loop.end - loop.start >= self.characters


STUCK = Threshold(repeats=8, characters=160)
"""For an answer that the token limit ended within the loop, and for one that was begun anew."""
ENDED = Threshold(repeats=40, characters=480)
"""For an answer that ended by itself: a page of equal rows has fewer, and a ruled line of dots is shorter."""


def find_loop(text: str, *, ended: bool, begun_anew: bool = False) -> Loop | None:
    """The longest loop in `text`, or None. Linear in the length of the text.

    `ended`: the model stopped by itself. If it did not, only a loop that runs to the end of the text counts.
    `begun_anew`: the engine had broken the answer off and begun it again.
    """
    text = text.rstrip()
    threshold = ENDED if ended and not begun_anew else STUCK
    if len(text) < threshold.characters:
        return None
    last = _loop_around(text, len(text), LAST_WINDOW)
    longest = last if last and threshold.is_met(last) else None
    if not ended:
        return longest
    seen = last.start if last else len(text)
    for anchor in range(len(text) - threshold.step, 0, -threshold.step):
        if anchor > seen:
            continue
        loop = _loop_around(text, anchor, WINDOW)
        if loop is None:
            continue
        seen = loop.start
        if threshold.is_met(loop) and (longest is None or loop.surplus > longest.surplus):
            longest = loop
    return longest


def _loop_around(text: str, anchor: int, window: int) -> Loop | None:
    """The longest stretch of at least `SEED` turns that ends at `anchor`, followed up in both directions."""
    begin = max(0, anchor - window)
    if text.rfind(text[anchor - PROBE : anchor], begin, anchor - 1) < 0:
        return None
    length, period = _periodic_suffix(text[begin:anchor])
    if not length:
        return None
    start, end = anchor - length, anchor
    while start > 0 and text[start - 1] == text[start - 1 + period]:
        start -= 1
    while end < len(text) and text[end] == text[end - period]:
        end += 1
    return Loop(start, end, period)


def _periodic_suffix(window: str) -> tuple[int, int]:
    """Length and period of the longest suffix that holds its smallest period `SEED` times; zeros if there is none.

    The prefix function of the reversed text gives the smallest period of every suffix in one pass.
    """
    backwards = window[::-1]
    border = [0] * len(backwards)
    length = period = matched = 0
    for i in range(1, len(backwards)):
        while matched and backwards[i] != backwards[matched]:
            matched = border[matched - 1]
        if backwards[i] == backwards[matched]:
            matched += 1
        border[i] = matched
        if (i + 1) >= SEED * (i + 1 - matched):
            length, period = i + 1, i + 1 - matched
    return length, period
