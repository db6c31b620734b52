from dataclasses import replace

import pytest

from handler.documents.failures import RenderFailure
from handler.documents.page import Crop, Cut
from handler.engine.api import EngineBusy, EngineGone, EngineRefused, EngineTimeout
from handler.errors import EngineUnavailable
from handler.recognition.asking import Asker, Patience
from handler.recognition.reader import Reader, ReadingPolicy
from handler.recognition.reading import Reading
from handler.recognition.slots import RegionSlots
from handler.schema import Label, Reason, RegionStatus
from tests.fakes.engine import Clock, FakeEngine, Said, abort, length, scripted, stop

POLICY = ReadingPolicy(ceiling=4096, patience=Patience(deadline_s=5))
CUT = Cut((Crop(b"as it is", 280, 56),), ink=0.1)
RECUT = Cut((Crop(b"changed", 308, 84),), ink=0.1)
LOOP = "and again and again, "


async def read(
    engine: FakeEngine,
    label: Label = Label.TEXT,
    cut: Cut = CUT,
    *,
    recut: Cut | RenderFailure = RECUT,
    ceiling: int | None = None,
    read_figures: bool = False,
    suspected: bool = False,
) -> Reading:
    async def cut_again() -> Cut:
        if isinstance(recut, RenderFailure):
            raise recut
        return recut

    clock = Clock()
    slots = RegionSlots(4)
    asker = Asker(engine, slots, POLICY.patience, clock=clock, sleep=clock.sleep)
    reader = Reader(engine, POLICY, slots, asker=asker)
    return await reader.read(label, cut, cut_again, ceiling=ceiling, read_figures=read_figures, suspected=suspected)


@pytest.mark.parametrize(
    ("label", "prompt"),
    [
        (Label.TEXT, "Text Recognition:"),
        (Label.HEADER, "Text Recognition:"),
        (Label.TABLE, "Table Recognition:"),
        (Label.DISPLAY_FORMULA, "Formula Recognition:"),
    ],
)
async def test_a_region_is_asked_for_with_its_own_prompt_and_picture(label: Label, prompt: str) -> None:
    engine = scripted(stop("said"))
    reading = await read(engine, label)
    assert reading == Reading("said", RegionStatus.OK, "stop", requests=1, prompt_tokens=10, completion_tokens=4)
    [request] = engine.requests
    assert (request.prompt, request.jpeg, request.repetition_penalty) == (prompt, b"as it is", 1.1)


async def test_a_figure_is_skipped_without_a_request_and_read_on_request() -> None:
    reading = await read(scripted(), Label.CHART)
    assert (reading.status, reading.reason) == (RegionStatus.SKIPPED, Reason.FIGURE_NOT_READ)
    reading = await read(scripted(stop("Sales 2025")), Label.CHART, read_figures=True)
    assert (reading.status, reading.text) == (RegionStatus.OK, "Sales 2025")


async def test_a_region_without_a_picture_fails() -> None:
    reading = await read(scripted(), cut=Cut((), ink=0.1))
    assert (reading.status, reading.reason) == (RegionStatus.FAILED, Reason.CROP_FAILED)


async def test_an_answer_cut_by_the_limit_is_asked_for_once_more_with_all_the_room() -> None:
    engine = scripted(length("The first half"), stop("The first half and the second"))
    reading = await read(engine)
    assert (reading.text, reading.status, reading.requests) == ("The first half and the second", RegionStatus.OK, 2)
    first, second = engine.requests
    assert first.max_tokens < second.max_tokens == 4096


async def test_an_answer_cut_twice_is_truncated() -> None:
    reading = await read(scripted(length("The first"), length("The first half")))
    assert (reading.text, reading.status, reading.reason) == (
        "The first half",
        RegionStatus.TRUNCATED,
        Reason.TOKEN_LIMIT,
    )


@pytest.mark.parametrize(
    "second", [EngineTimeout("300 s"), EngineRefused("400"), stop("Wha"), stop(""), abort("The f")]
)
async def test_more_room_that_brings_less_keeps_the_first_answer(second: Said) -> None:
    engine = FakeEngine(lambda request: length("The first half") if request.max_tokens < 4096 else second)
    reading = await read(engine)
    assert (reading.text, reading.status, reading.reason) == (
        "The first half",
        RegionStatus.TRUNCATED,
        Reason.TOKEN_LIMIT,
    )
    assert reading.message is not None
    assert "asked again" in reading.message


async def test_a_fuller_answer_keeps_what_the_first_said_otherwise() -> None:
    reading = await read(scripted(length("The first hall"), stop("The first half and the second")))
    assert (reading.text, reading.superseded) == ("The first half and the second", ("The first hall",))
    reading = await read(scripted(length("The first half"), stop("The first half and the second")))
    assert reading.superseded == ()


async def test_the_jobs_ceiling_holds_for_both_requests() -> None:
    engine = scripted(length("half"))
    reading = await read(engine, ceiling=100)
    assert reading.status is RegionStatus.TRUNCATED
    assert [request.max_tokens for request in engine.requests] == [100]


async def test_the_context_holds_for_both_requests() -> None:
    engine = scripted(length("half"), length("half."), context=1024)
    await read(engine)
    assert all(request.max_tokens + 20 < 1024 for request in engine.requests)


async def test_an_empty_answer_is_asked_for_once_more() -> None:
    reading = await read(scripted(stop(""), stop("there it is")))
    assert (reading.text, reading.status, reading.requests) == ("there it is", RegionStatus.OK, 2)


async def test_an_area_that_only_its_ink_suggests_is_asked_for_once() -> None:
    reading = await read(scripted(stop("")), suspected=True)
    assert (reading.status, reading.reason, reading.requests) == (RegionStatus.SKIPPED, Reason.EMPTY_ANSWER, 1)


@pytest.mark.parametrize(
    ("said", "reason"), [("", Reason.EMPTY_ANSWER), ("Text Recognition:", Reason.PROMPT_ECHO)], ids=["empty", "echo"]
)
async def test_saying_nothing_twice_is_a_failure(said: str, reason: Reason) -> None:
    reading = await read(scripted(stop(said), stop(said)))
    assert (reading.text, reading.status, reading.reason) == (said, RegionStatus.FAILED, reason)


async def test_the_last_error_is_the_one_reported() -> None:
    reading = await read(scripted(stop(""), EngineRefused("400: of the second request")))
    assert (reading.status, reading.reason) == (RegionStatus.FAILED, Reason.ENGINE_REFUSED)
    assert reading.message == "400: of the second request"


async def test_text_on_paper_without_ink_is_quarantined_with_its_text() -> None:
    reading = await read(scripted(stop("Once upon a time")), cut=Cut(CUT.crops, ink=0.0))
    assert (reading.text, reading.status, reading.reason) == (
        "Once upon a time",
        RegionStatus.SKIPPED,
        Reason.TEXT_WITHOUT_INK,
    )


async def test_a_loop_is_read_again_from_a_changed_picture_and_with_another_penalty() -> None:
    engine = scripted(length(LOOP * 100), stop("what stands there, in full length"))
    reading = await read(engine)
    assert (reading.text, reading.status, reading.reason) == (
        "what stands there, in full length",
        RegionStatus.OK,
        None,
    )
    assert reading.superseded == (LOOP * 100,)
    assert [request.jpeg for request in engine.requests] == [b"as it is", b"changed"]
    assert engine.requests[1].repetition_penalty == 1.2


@pytest.mark.parametrize(
    "second",
    [length(LOOP * 90), stop("too short"), EngineRefused("400"), stop("")],
    ids=["a loop again", "less than was said", "refused", "empty"],
)
async def test_a_loop_that_stays_is_flagged_and_never_cut(second: Said) -> None:
    first = "A page of text that stands before the loop. " * 3 + LOOP * 100
    engine = FakeEngine(lambda request: length(first) if request.jpeg == b"as it is" else second)
    reading = await read(engine)
    assert (reading.text, reading.status, reading.reason) == (first, RegionStatus.TRUNCATED, Reason.REPETITION)
    assert reading.superseded == (("too short",) if second == stop("too short") else ())
    assert reading.requests >= 2


@pytest.mark.parametrize(
    "again", [RenderFailure(Reason.RENDER_TIMEOUT, "30 s"), Cut((), ink=1.0)], ids=["page gone", "no picture"]
)
async def test_a_loop_stays_flagged_when_the_page_cannot_be_cut_again(again: Cut | RenderFailure) -> None:
    reading = await read(scripted(stop(LOOP * 100)), recut=again)
    assert (reading.status, reading.reason) == (RegionStatus.OK, Reason.REPETITION)


async def test_equal_rows_of_an_answer_that_was_begun_anew_are_read_again() -> None:
    rows = "Widget, blue    10.00\n" * 12 + "Total    120.00"
    engine = scripted(replace(stop(rows), retractions=1), stop(rows))
    reading = await read(engine)
    assert (reading.text, reading.status, reading.reason) == (rows, RegionStatus.OK, None)
    assert [request.jpeg for request in engine.requests] == [b"as it is", b"changed"]


async def test_what_only_repeated_itself_after_a_retraction_loses_against_the_shorter_truth() -> None:
    engine = scripted(
        replace(stop("A row of the table. " + "and again, " * 30), retractions=1), stop("A row of the table.")
    )
    assert (await read(engine)).text == "A row of the table."


async def test_equal_rows_are_neither_flagged_nor_read_again() -> None:
    text = "Widget, blue    10.00\n" * 12 + "Total    120.00"
    reading = await read(scripted(stop(text)))
    assert (reading.text, reading.status, reading.reason) == (text, RegionStatus.OK, None)


async def test_tiles_of_a_strip_are_read_in_order_and_joined() -> None:
    tiles = Cut((Crop(b"1", 5600, 28), Crop(b"2", 5600, 28), Crop(b"3", 280, 28)), ink=0.1)
    engine = FakeEngine(lambda request: stop(f"part {request.jpeg.decode()}"))
    reading = await read(engine, cut=tiles)
    assert (reading.text, reading.status, reading.requests) == ("part 1 part 2 part 3", RegionStatus.OK, 3)


async def test_the_tiles_of_a_column_are_joined_by_lines() -> None:
    tiles = Cut((Crop(b"1", 28, 5600), Crop(b"2", 28, 280)), ink=0.1)
    reading = await read(FakeEngine(lambda request: stop(request.jpeg.decode())), cut=tiles)
    assert reading.text == "1\n2"


async def test_a_failed_tile_fails_the_region_and_keeps_the_others_text() -> None:
    tiles = Cut((Crop(b"1", 5600, 28), Crop(b"2", 280, 28)), ink=0.1)
    engine = FakeEngine(lambda request: EngineRefused("400") if request.jpeg == b"2" else stop("part 1"))
    reading = await read(engine, cut=tiles)
    assert (reading.text, reading.status, reading.reason) == ("part 1 ", RegionStatus.FAILED, Reason.ENGINE_REFUSED)


async def test_an_engine_that_stays_busy_fails_the_region_and_not_the_job() -> None:
    reading = await read(FakeEngine(lambda _: EngineBusy("503")))
    assert (reading.status, reading.reason, reading.message) == (RegionStatus.FAILED, Reason.ENGINE_ERROR, "503")


async def test_an_engine_that_is_gone_ends_the_job() -> None:
    with pytest.raises(EngineUnavailable):
        await read(scripted(EngineGone("exit code 137")))
