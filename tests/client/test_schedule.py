"""When to ask again: the bounds hold for every job length and every course of progress."""

import math

import pytest
from glmocr_runpod.contract import Progress
from glmocr_runpod.schedule import (
    LONGEST_POLL_S,
    RETRY_DELAYS_S,
    patient_delay,
    policy,
    poll_delay,
    retry_delay,
)
from hypothesis import given
from hypothesis import strategies as st

LATENCY_S = 0.15


def polls(job_s: float, pages: int, *, honest: bool = True) -> tuple[int, float]:
    """Status calls of a job that runs `job_s`, and how long after its end the last one answers."""
    now, calls = 0.0, 0
    progress = None
    while True:
        now += poll_delay(calls, now, progress) + LATENCY_S
        calls += 1
        if now >= job_s:
            return calls, now - job_s
        if pages:
            done = int(pages * now / job_s) if honest else pages - 1
            progress = Progress(pages_done=done, pages_total=pages, regions_done=done * 10)


@given(job_s=st.floats(0.1, 6 * 3600), pages=st.integers(0, 500), honest=st.booleans())
def test_a_finished_job_is_returned_soon(job_s: float, pages: int, honest: bool) -> None:
    _, late = polls(job_s, pages, honest=honest)
    assert late <= max(2.0, 0.1 * job_s)


@given(pages=st.integers(0, 500), honest=st.booleans())
def test_a_job_of_300_s_costs_at_most_60_calls(pages: int, honest: bool) -> None:
    calls, _ = polls(300, pages, honest=honest)
    assert calls <= 60


def test_the_figures_for_the_documentation() -> None:
    assert [polls(seconds, 20)[0] for seconds in (2, 30, 300, 3600)] == [3, 17, 43, 101]


@given(calls=st.integers(0, 10_000), elapsed=st.floats(0, 1e12))
def test_a_clock_that_jumped_costs_a_minute_at_most(calls: int, elapsed: float) -> None:
    assert 0 < poll_delay(calls, elapsed) <= LONGEST_POLL_S


@pytest.mark.parametrize(("attempt", "middle"), list(enumerate(RETRY_DELAYS_S)))
def test_retries_with_a_tenth_of_jitter(attempt: int, middle: float) -> None:
    assert retry_delay(attempt, 0.5) == middle
    assert retry_delay(attempt, 0.0) == pytest.approx(0.9 * middle)
    assert retry_delay(attempt, 1.0) == pytest.approx(1.1 * middle)


def test_five_repetitions_and_no_more() -> None:
    assert retry_delay(5, 0.5) is None
    assert patient_delay(500, 0.5) == 120


def test_the_server_may_ask_for_more_but_not_for_ever() -> None:
    assert retry_delay(0, 0.5, 45) == 45
    assert retry_delay(3, 0.5, 45) == 120
    assert retry_delay(0, 0.5, 1e9) == 600


@given(st.integers(1, 100_000))
def test_the_policy_is_within_the_platforms_bounds(pages: int) -> None:
    wire = policy(pages).wire()
    assert 5000 < wire["executionTimeout"] < wire["ttl"] <= 7 * 24 * 3600 * 1000
    assert wire["executionTimeout"] >= min(pages * 15_000, 500_000_000)
    assert math.isclose(wire["ttl"] - wire["executionTimeout"], 24 * 3600 * 1000)


def test_an_uncounted_document_gets_room() -> None:
    assert policy(None).execution_s == 4500
    assert policy(1).execution_s == 900
