import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.recognition import repetition
from handler.recognition.repetition import ENDED, LAST_WINDOW, STUCK, WINDOW, Loop, find_loop

ROW = "<tr><td>Strom</td><td>kWh</td><td>0,31</td></tr>"


@pytest.mark.parametrize(
    ("text", "period"),
    [
        ("The quick brown fox jumps over the lazy dog.\n" * 400, 45),
        ("Once upon a time " + "and then he said " * 30, 17),
        ("Total: " + "0" * 600, 1),
        ("<table>" + ROW * 60 + "<tr><td>Str", len(ROW)),
        ("Heading\n\n" + "first line\nsecond line\nthird line\n" * 50 + "first li", 34),
    ],
    ids=["line", "phrase", "character", "table row", "several lines"],
)
def test_an_answer_that_the_token_limit_ended_in_a_loop_is_stuck(text: str, period: int) -> None:
    loop = find_loop(text, ended=False)
    assert loop is not None
    assert loop.period == period
    assert loop.end == len(text.rstrip())


@pytest.mark.parametrize(
    "text",
    [
        "<table>" + ROW * 60 + "</table>",
        "Intro.\n" + "The same line again\n" * 400 + "The end, at last.",
        "word " * 200 + "x" * 5000,
    ],
    ids=["table closed after all", "last line differs", "long tail"],
)
def test_a_long_loop_is_found_though_the_answer_ended_by_itself(text: str) -> None:
    assert find_loop(text, ended=True) is not None


@pytest.mark.parametrize(
    "text",
    [
        "Widget, blue    10.00\n" * 12 + "Total    120.00",
        (
            "| Position | "
            + "Hammer, 300 g, ash handle, with certificate of origin and a spare wedge " * 2
            + "| 17.50 |\n"
        )
        * 15
        + "| Total | 262.50 |",
        "<table>" + "<tr><td></td><td></td><td></td></tr>" * 30 + "</table>",
        "Introduction " + "." * 140 + " 5\n" + "Method " + "." * 146 + " 17",
        "Name: " + "_" * 90 + "\nDate: " + "_" * 90 + "\nPlace: " + "_" * 90,
        "\n".join(f"{n}. item number {n} of the list" for n in range(300)),
        "yes\n" * 30,
        "",
        "a",
    ],
    ids=["12 equal rows", "15 equal rows", "empty form", "leaders", "blanks", "numbered", "short rows", "empty", "one"],
)
def test_what_a_document_may_say_many_times_is_no_loop(text: str) -> None:
    assert find_loop(text, ended=True) is None


def test_an_answer_that_was_begun_anew_is_suspect_earlier() -> None:
    text = "Before the break. " + "Widget, blue    10.00\n" * 12 + "Total    120.00"
    assert find_loop(text, ended=True) is None
    loop = find_loop(text, ended=True, begun_anew=True)
    assert loop is not None
    assert loop.repeats == 12


def test_equal_rows_before_the_limit_are_no_loop_unless_they_reach_the_end() -> None:
    text = "Widget, blue    10.00\n" * 12 + "Then the text went on with other things, and was cut off he"
    assert find_loop(text, ended=False) is None


@given(
    st.booleans(),
    st.text(alphabet="abcdef ", max_size=400),
    st.text(alphabet="xyz -", min_size=1, max_size=60).filter(lambda unit: unit == unit.strip()),
    st.integers(0, 80),
    st.text(alphabet="ghijk ", max_size=900),
)
def test_a_planted_loop_is_found_wherever_it_stands(
    begun_anew: bool, before: str, unit: str, more: int, after: str
) -> None:
    threshold = STUCK if begun_anew else ENDED
    turns = max(threshold.repeats, threshold.characters // len(unit) + 1) + more
    text = before + unit * turns + after
    loop = find_loop(text, ended=True, begun_anew=begun_anew)
    assert loop is not None
    assert loop.end - loop.start >= len(unit) * turns
    assert len(unit) % loop.period == 0


@given(st.text(alphabet="ab\n", max_size=3000), st.booleans())
def test_what_is_found_repeats_itself(text: str, ended: bool) -> None:
    loop = find_loop(text, ended=ended)
    if loop is not None:
        assert all(text[i] == text[i + loop.period] for i in range(loop.start, loop.end - loop.period))
        assert (ENDED if ended else STUCK).is_met(loop)


def test_the_surplus_is_what_repeats() -> None:
    assert Loop(start=10, end=110, period=20).repeats == 5
    assert Loop(start=10, end=110, period=20).surplus == 80


def test_the_work_is_bounded_by_the_text_s_length(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    look = repetition._periodic_suffix

    def counting(window: str) -> tuple[int, int]:
        looked_at.append(len(window))
        return look(window)

    monkeypatch.setattr(repetition, "_periodic_suffix", counting)
    text = "".join(chr(97 + (i * i * 7919 + i) % 26) for i in range(100_000))
    find_loop(text, ended=True)
    assert sum(looked_at) <= LAST_WINDOW + len(text) * WINDOW / ENDED.step
