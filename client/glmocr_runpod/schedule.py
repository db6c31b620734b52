"""When to ask again, and how long a job may take. Pure numbers; jitter is drawn by the caller."""

from dataclasses import dataclass

from glmocr_runpod.contract import Progress

RETRY_DELAYS_S = (10.0, 20.0, 40.0, 120.0, 120.0)
"""The wait before each repetition: five after the first try."""
JITTER = 0.1
MAX_RETRY_AFTER_S = 600.0
"""A server that asks for more than this is asked again all the same."""

FIRST_POLLS_S = (0.5, 0.7, 1.0)
SHORTEST_POLL_S = 1.8
LONGEST_POLL_S = 60.0
"""Keeps a clock that jumped forward from costing more than a minute."""
POLL_SHARE = 0.09
"""Of the time since submission. With the request's own time it stays under the 10 % a finished job may wait."""
SHORTENED = 0.85
"""How far the promise of a near end may shorten an interval, so that a job of 300 s stays under 60 calls."""

SECONDS_PER_PAGE = 15
"""A page takes about 2 s on a GPU; the slowest machine in the field took 8 to 15 s."""
SHORTEST_EXECUTION_S = 900
LONGEST_EXECUTION_S = 7 * 24 * 3600 - 24 * 3600
QUEUE_S = 24 * 3600
"""How long a job may wait for a worker."""
UNKNOWN_PAGES = 300
"""Assumed where the client cannot count, as with a URL."""


def retry_delay(attempt: int, random: float, retry_after_s: float | None = None) -> float | None:
    """Seconds before repetition number `attempt` (from 0), or None when there is none left.

    `random` is drawn from [0, 1). A server's Retry-After wins where it is the longer wait.
    """
    if attempt >= len(RETRY_DELAYS_S):
        return None
    return max(_jittered(RETRY_DELAYS_S[attempt], random), min(retry_after_s or 0.0, MAX_RETRY_AFTER_S))


def patient_delay(attempt: int, random: float, retry_after_s: float | None = None) -> float:
    """The same for polling, which goes on: the last wait repeats."""
    delay = retry_delay(min(attempt, len(RETRY_DELAYS_S) - 1), random, retry_after_s)
    assert delay is not None
    return delay


def _jittered(seconds: float, random: float) -> float:
    return seconds * (1 + JITTER * (2 * random - 1))


def poll_delay(calls: int, elapsed_s: float, progress: Progress | None = None) -> float:
    """Seconds until the next status call of a job submitted `elapsed_s` ago and asked about `calls` times.

    Quick at first, then a share of the time waited, so that a finished job is seen within max(2 s, 10 %).
    """
    if calls < len(FIRST_POLLS_S) and elapsed_s < sum(FIRST_POLLS_S):
        return FIRST_POLLS_S[calls]
    interval = min(max(SHORTEST_POLL_S, POLL_SHARE * elapsed_s), LONGEST_POLL_S)
    remaining = remaining_s(elapsed_s, progress)
    if remaining is not None and remaining < interval:
        return max(remaining, SHORTENED * interval)
    return interval


def remaining_s(elapsed_s: float, progress: Progress | None) -> float | None:
    """How long the job should still take at the pace of its pages so far; None when it does not say."""
    if progress is None or progress.pages_done <= 0 or progress.pages_total <= 0:
        return None
    left = max(progress.pages_total - progress.pages_done, 0)
    return elapsed_s * left / progress.pages_done


@dataclass(frozen=True, slots=True)
class Policy:
    """RunPod's limits for one job, seconds."""

    execution_s: int
    """How long it may run."""
    ttl_s: int
    """How long the platform knows it: waiting and running together."""

    def wire(self) -> dict[str, int]:
        """As `policy` in the request, milliseconds."""
        return {"executionTimeout": self.execution_s * 1000, "ttl": self.ttl_s * 1000}


def policy(page_count: int | None) -> Policy:
    """The limits for a document of `page_count` pages; None when the client cannot count them."""
    pages = UNKNOWN_PAGES if page_count is None else page_count
    execution = min(max(SHORTEST_EXECUTION_S, SECONDS_PER_PAGE * pages), LONGEST_EXECUTION_S)
    return Policy(execution_s=execution, ttl_s=execution + QUEUE_S)
