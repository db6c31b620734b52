import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulator.scheduler import GPUS, Gpu, Request, Scheduler, ideal_makespan

STEPS = Gpu("steps", prefill_tokens_per_s=1000.0, step_s=1.0)


def request(number: int = 0, prompt: int = 10, answer: int = 3, most: int = 100) -> Request:
    return Request(number, prompt, answer, most)


def run(scheduler: Scheduler) -> tuple[float, list[Request]]:
    total = 0.0
    done: list[Request] = []
    while (seconds := scheduler.begin()) is not None:
        total += seconds
        done += scheduler.end()
    return total, done


def test_one_request_takes_its_prefill_and_a_step_per_further_token() -> None:
    scheduler = Scheduler(STEPS)
    scheduler.queue.append(request(prompt=500, answer=4))
    total, [done] = run(scheduler)
    assert total == pytest.approx(0.5 + 3 * 1.0)
    assert (done.produced, done.complete) == (4, True)


def test_a_budget_that_is_too_small_cuts_the_answer() -> None:
    scheduler = Scheduler(STEPS)
    scheduler.queue.append(request(answer=50, most=8))
    _, [done] = run(scheduler)
    assert (done.produced, done.complete) == (8, False)


def test_a_prompt_larger_than_the_chunk_takes_several_steps_and_goes_before_decoding() -> None:
    scheduler = Scheduler(STEPS, chunk=100)
    scheduler.queue.extend([request(0, prompt=50, answer=9), request(1, prompt=120, answer=2)])
    assert scheduler.begin() == pytest.approx(0.1)
    scheduler.end()
    assert [r.produced for r in scheduler.running] == [1, 0]
    assert scheduler.begin() == pytest.approx(0.07)
    scheduler.end()
    assert scheduler.begin() == pytest.approx(1.0)


def test_no_more_run_than_there_are_slots() -> None:
    scheduler = Scheduler(STEPS, slots=2)
    scheduler.queue.extend(request(i, answer=5) for i in range(5))
    scheduler.begin()
    assert (len(scheduler.running), len(scheduler.queue)) == (2, 3)


@pytest.mark.parametrize(("most", "together"), [(512, 14), (4096, 6), (30_000, 6)])
def test_admission_reserves_what_was_asked_for_up_to_4096(most: int, together: int) -> None:
    """SGLang 0.5.23 with a pool of 32768 ran 14 such prompts at once with 512, and 5 or 6 with 4096 or more."""
    scheduler = Scheduler(GPUS["G2"], pool=32_768)
    scheduler.queue.extend(request(i, prompt=1780, answer=300, most=most) for i in range(16))
    peak = 0
    while scheduler.begin() is not None:
        peak = max(peak, len(scheduler.running))
        scheduler.end()
    assert abs(peak - together) <= 1


def test_an_overflowing_pool_throws_the_youngest_back_and_all_finish() -> None:
    scheduler = Scheduler(STEPS, pool=330)
    scheduler.queue.extend(request(i, prompt=50, answer=120, most=120) for i in range(4))
    _, done = run(scheduler)
    assert sorted(r.number for r in done) == [0, 1, 2, 3]
    assert scheduler.retractions > 0


def test_a_cancelled_request_leaves_no_trace() -> None:
    scheduler = Scheduler(STEPS)
    scheduler.queue.extend([request(0), request(1)])
    scheduler.begin()
    scheduler.cancel(0)
    scheduler.queue.append(request(2))
    scheduler.cancel(2)
    _, done = run(scheduler)
    assert [r.number for r in done] == [1]


def test_ideal_makespan_leaves_the_requests_alone_and_is_shorter_together() -> None:
    requests = [request(i, prompt=300, answer=80) for i in range(64)]
    together = ideal_makespan(GPUS["G1"], requests)
    one_by_one = sum(ideal_makespan(GPUS["G1"], [r]) for r in requests)
    assert 0 < together < one_by_one / 10
    assert all(r.produced == 0 and r.to_prefill == 300 for r in requests)


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(1, 60), st.integers(1, 80)), min_size=1, max_size=30),
    st.integers(1, 8),
    st.integers(64, 2000),
)
def test_every_request_ends_with_its_tokens(shapes: list[tuple[int, int, int]], slots: int, pool: int) -> None:
    scheduler = Scheduler(STEPS, slots=slots, pool=pool, chunk=64)
    scheduler.queue.extend(Request(i, *shape) for i, shape in enumerate(shapes))
    _, done = run(scheduler)
    assert sorted(r.number for r in done) == list(range(len(shapes)))
    assert all(r.produced == min(r.answer_tokens, r.max_tokens) for r in done)


def test_slow_motion_changes_nothing_but_the_time() -> None:
    requests = [request(i, prompt=300 + i, answer=20 + i) for i in range(80)]
    plain, slow = (ideal_makespan(gpu, requests) for gpu in (GPUS["G2"], GPUS["G2"].slowed(4)))
    assert slow == pytest.approx(4 * plain)
