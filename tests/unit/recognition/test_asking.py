import asyncio

import pytest

from handler.engine.api import (
    EngineBusy,
    EngineFailure,
    EngineGone,
    EngineRefused,
    EngineReply,
    EngineRequest,
    EngineTimeout,
)
from handler.errors import EngineUnavailable
from handler.recognition.asking import Asker, Patience
from handler.recognition.reading import Answer
from handler.recognition.slots import RegionSlots
from handler.schema import Reason
from tests.fakes.engine import Clock, FakeEngine, abort, scripted, stop

REQUEST = EngineRequest("Text Recognition:", b"picture", 512)
PATIENCE = Patience(deadline_s=20, first_pause_s=1, longest_pause_s=8)


def asker(engine: FakeEngine, clock: Clock | None = None) -> Asker:
    clock = clock or Clock()
    return Asker(engine, RegionSlots(4), PATIENCE, clock=clock, sleep=clock.sleep, jitter=lambda: 1.0)


async def test_an_answer_is_taken_as_it_is() -> None:
    assert await asker(scripted(stop(" as it is\n"))).ask(REQUEST) == Answer(
        " as it is\n", "stop", requests=1, prompt_tokens=10, completion_tokens=10
    )


async def test_an_answer_that_was_begun_anew_says_how_often_here_and_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "handler.recognition"):
        answer = await asker(scripted(EngineReply("text", "stop", retractions=2))).ask(REQUEST)
    assert answer.retractions == 2
    assert "anew, 2 times" in caplog.text


async def test_a_refusal_is_permanent_and_keeps_the_engines_words() -> None:
    answer = await asker(scripted(EngineRefused("400: picture too narrow"))).ask(REQUEST)
    assert (answer.failure, answer.message, answer.requests) == (
        Reason.ENGINE_REFUSED,
        "400: picture too narrow",
        1,
    )


async def test_a_busy_engine_is_asked_again_with_growing_pauses() -> None:
    clock = Clock()
    engine = scripted(EngineBusy("503"), EngineBusy("429"), EngineBusy("reset"), stop("at last"))
    answer = await asker(engine, clock).ask(REQUEST)
    assert (answer.text, answer.failure, answer.requests) == ("at last", None, 4)
    assert clock.pauses == [1, 2, 4]


async def test_patience_ends_with_the_last_error_in_the_answer() -> None:
    clock = Clock()
    busy = [EngineBusy(f"503, the {n}th") for n in range(1, 20)]
    answer = await asker(scripted(*busy), clock).ask(REQUEST)
    assert answer.failure is Reason.ENGINE_ERROR
    assert clock.pauses == [1, 2, 4, 8]
    assert answer.message == "503, the 5th"
    assert clock.now <= PATIENCE.deadline_s


async def test_a_timeout_is_not_repeated() -> None:
    answer = await asker(scripted(EngineTimeout("300 s"))).ask(REQUEST)
    assert (answer.failure, answer.requests) == (Reason.ENGINE_TIMEOUT, 1)


async def test_an_unclear_failure_is_not_repeated() -> None:
    answer = await asker(scripted(EngineFailure("no JSON"))).ask(REQUEST)
    assert (answer.failure, answer.requests) == (Reason.ENGINE_ERROR, 1)


async def test_an_aborted_answer_is_asked_for_again() -> None:
    answer = await asker(scripted(abort("half"), stop("half and half"))).ask(REQUEST)
    assert (answer.text, answer.failure, answer.requests) == ("half and half", None, 2)


async def test_what_was_said_before_the_last_error_is_kept() -> None:
    answer = await asker(scripted(abort("half of it"), abort("half"), EngineRefused("400"))).ask(REQUEST)
    assert (answer.text, answer.failure, answer.requests) == ("half of it", Reason.ABORTED, 3)
    assert answer.prompt_tokens == 20


async def test_what_another_answer_replaced_is_set_aside() -> None:
    answer = await asker(scripted(abort("hats"), abort("half"), stop("half and half"))).ask(REQUEST)
    assert (answer.text, answer.superseded) == ("half and half", ("hats",))


async def test_what_an_aborted_answer_said_is_kept() -> None:
    answer = await asker(FakeEngine(lambda _: abort("half"))).ask(REQUEST)
    assert (answer.text, answer.finish_reason, answer.failure) == ("half", "abort", Reason.ABORTED)


@pytest.mark.parametrize("failure", [EngineGone("process ended"), EngineBusy("connection refused")])
async def test_a_dead_engine_ends_the_job_and_the_worker(failure: EngineFailure) -> None:
    engine = scripted(failure)
    engine.is_alive = False
    with pytest.raises(EngineUnavailable) as raised:
        await asker(engine).ask(REQUEST)
    assert raised.value.retryable
    assert raised.value.worker_unfit


async def test_lone_surrogates_become_replacement_characters() -> None:
    answer = await asker(scripted(stop("a\ud83db \U0001f600"))).ask(REQUEST)
    assert answer.text == "a\ufffdb \U0001f600"
    answer.text.encode()


async def test_a_region_that_waits_holds_no_slot() -> None:
    slots = RegionSlots(1, fixed=1)
    held_while_waiting: list[int] = []

    async def sleep(_: float) -> None:
        held_while_waiting.append(slots.in_flight)

    engine = scripted(EngineBusy("503"), stop("done"))
    await Asker(engine, slots, PATIENCE, sleep=sleep, clock=lambda: 0.0).ask(REQUEST)
    assert held_while_waiting == [0]


async def test_cancelling_goes_through() -> None:
    started = asyncio.Event()

    class Hanging(FakeEngine):
        async def complete(self, request: EngineRequest) -> EngineReply:
            started.set()
            await asyncio.Event().wait()
            return stop("too late")

    slots = RegionSlots(4)
    task = asyncio.create_task(Asker(Hanging(lambda _: stop("")), slots, PATIENCE).ask(REQUEST))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert slots.in_flight == 0
