from dataclasses import replace

import pytest

from handler.recognition.prompts import Task
from handler.recognition.reading import Answer
from handler.recognition.verdict import Asked, foreign_script, is_echo, joined, judge
from handler.schema import Label, Reason, RegionStatus

TEXT = Asked(Label.TEXT, Task.TEXT, ink=0.08, contrast=0.9)
TABLE = replace(TEXT, label=Label.TABLE, task=Task.TABLE)
EMPTY_PAPER = replace(TEXT, ink=0.0)
PICTURE = replace(TEXT, label=Label.IMAGE)

OK, TRUNCATED, FAILED, SKIPPED = RegionStatus.OK, RegionStatus.TRUNCATED, RegionStatus.FAILED, RegionStatus.SKIPPED


def said(text: str, finish_reason: str = "stop", failure: Reason | None = None, *, retractions: int = 0) -> Answer:
    return Answer(text, finish_reason, failure, requests=1, retractions=retractions)


@pytest.mark.parametrize(
    ("answer", "asked", "status", "reason"),
    [
        (said("plain text"), TEXT, OK, None),
        (said("half a sent", "length"), TEXT, TRUNCATED, Reason.TOKEN_LIMIT),
        (said("half a sent", "content_filter"), TEXT, TRUNCATED, Reason.ABORTED),
        (said(""), TEXT, FAILED, Reason.EMPTY_ANSWER),
        (said("  \n"), TEXT, FAILED, Reason.EMPTY_ANSWER),
        (said("", "length"), TEXT, FAILED, Reason.EMPTY_ANSWER),
        (said(""), EMPTY_PAPER, OK, None),
        (said(""), PICTURE, OK, None),
        (said(""), replace(TEXT, suspected=True), SKIPPED, Reason.EMPTY_ANSWER),
        (said("invented prose"), EMPTY_PAPER, SKIPPED, Reason.TEXT_WITHOUT_INK),
        (said("Text Recognition:"), TEXT, FAILED, Reason.PROMPT_ECHO),
        (said("Text Recognition: Text Recognition:\n"), TEXT, FAILED, Reason.PROMPT_ECHO),
        (said("Text Recognition:\nreal text"), TEXT, OK, Reason.PROMPT_ECHO),
        (said("the same line again\n" * 400), TEXT, OK, Reason.REPETITION),
        (said("the same line again\n" * 400, "length"), TEXT, TRUNCATED, Reason.REPETITION),
        (said("the same line again\n" * 12 + "and a last one"), TEXT, OK, None),
        (said("the same line again\n" * 12 + "and a last one", retractions=1), TEXT, OK, Reason.REPETITION),
        (said("one line\nanother line\n", retractions=3), TEXT, OK, None),
        (said("<table><tr><td>1</td></tr></table>"), TABLE, OK, None),
        (said("<table><tr><td>1</td></tr>"), TABLE, TRUNCATED, Reason.UNCLOSED_TABLE),
        (said("<table><tr><td>1</td></tr>", "length"), TABLE, TRUNCATED, Reason.TOKEN_LIMIT),
        (said("<table><tr><td>1"), TEXT, TRUNCATED, Reason.UNCLOSED_TABLE),
        (said("<table-name>ADDRESS</table-name>"), TEXT, OK, None),
        (said("write <table> to begin one"), TEXT, OK, None),
        (said("```html\n<table>\n```"), TEXT, OK, None),
        (said("", failure=Reason.ENGINE_REFUSED), TEXT, FAILED, Reason.ENGINE_REFUSED),
        (said("half", "abort", Reason.ABORTED), TEXT, TRUNCATED, Reason.ABORTED),
        (said("", "abort", Reason.ABORTED), TEXT, FAILED, Reason.ABORTED),
        (said("مرحبا بالعالم"), TEXT, OK, Reason.SCRIPT_UNSUPPORTED),
        (said("text"), replace(TEXT, contrast=0.05), OK, Reason.LOW_CONTRAST),
    ],
)
def test_verdicts(answer: Answer, asked: Asked, status: RegionStatus, reason: Reason | None) -> None:
    reading = judge(answer, asked)
    assert (reading.status, reading.reason) == (status, reason)
    assert reading.text == answer.text
    assert (reading.message is None) == (reason is None or answer.failure is not None)


def test_a_loop_says_so_when_the_engine_had_begun_the_answer_anew() -> None:
    looped = "the same line again\n" * 100
    assert "anew" in str(judge(said(looped, retractions=2), TEXT).message)
    assert "anew" not in str(judge(said(looped), TEXT).message)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("The model reads Latin, 漢字, かな, カナ, 한글, Русский and Greek α, as in 𝑥² + Ω", None),  # noqa: RUF001
        ("ＡＢＣ　１２３", None),  # noqa: RUF001
        ("naïve façade, Łódź, Ångström", None),
        ("مرحبا", "ARABIC"),
        ("ภาษาไทย", "THAI"),
        ("The Hebrew for peace is שלום, as everyone knows by now", None),
        ("12.5 %", None),
    ],
)
def test_scripts(text: str, script: str | None) -> None:
    assert foreign_script(text) == script


@pytest.mark.parametrize(
    ("text", "echo"),
    [("Text Recognition:", True), ("Table Recognition:\n", True), ("", False), ("Recognition of text", False)],
)
def test_an_echo_says_nothing_but_prompts(text: str, echo: bool) -> None:
    assert is_echo(text) is echo


def test_tiles_are_joined_in_order_under_the_worst_status() -> None:
    tiles = [
        judge(said("first"), TEXT),
        judge(said("secon", "length"), TEXT),
        judge(said("third"), TEXT),
    ]
    whole = joined(tiles, " ")
    assert whole.text == "first secon third"
    assert (whole.status, whole.reason, whole.requests) == (TRUNCATED, Reason.TOKEN_LIMIT, 3)


def test_a_note_on_one_tile_is_not_lost() -> None:
    tiles = [judge(said("clear"), TEXT), judge(said("Text Recognition: more"), TEXT)]
    assert joined(tiles, " ").reason is Reason.PROMPT_ECHO
