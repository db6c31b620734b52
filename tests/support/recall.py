"""How much of a known text was read: by words, by characters, and in order."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence


def word_recall(known: str, read: str) -> float:
    """Share of the known words, each counted as often as it stands there, that are in what was read."""
    return _recall(known.split(), read.split())


def character_recall(known: str, read: str) -> float:
    """Share of the known characters, white space left out, that are in what was read."""
    return _recall([c for c in known if not c.isspace()], [c for c in read if not c.isspace()])


def in_order(known: Sequence[str], read: str) -> float:
    """Share of the known lines that stand in what was read in the order they are known in."""
    places = [read.find(line) for line in known]
    return longest_rising_run(place for place in places if place >= 0) / len(known)


def longest_rising_run(values: Iterable[int]) -> int:
    """Length of the longest strictly increasing subsequence."""
    ends: list[int] = []
    for value in values:
        place = bisect_left(ends, value)
        ends[place : place + 1] = [value]
    return len(ends)


def _recall(known: Sequence[str], read: Sequence[str]) -> float:
    if not known:
        return 1.0
    return (Counter(known) & Counter(read)).total() / len(known)
