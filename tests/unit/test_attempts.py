import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from handler.attempts import Ending, Journal, answered, ended, finished, read_attempts, started
from handler.company import Care
from handler.engine.api import EngineRequest
from handler.recognition.reading import Answer

REQUEST = EngineRequest("Text Recognition:", b"jpeg", 100, 1.1)
ANSWER = Answer("a line\nanother", "stop", requests=2, superseded=("before",))


def whole(folder: Path) -> Journal:
    journal = Journal(folder, "job")
    journal.append([started(1, Care.TOGETHER), started(2, Care.ALONE)])
    journal.append([answered(REQUEST, ANSWER), finished(1), ended(Ending.ENGINE_LOST), ended(Ending.LEFT)])
    return journal


def test_says_what_was_written(tmp_path: Path) -> None:
    whole(tmp_path)
    (attempt,), answers = read_attempts(tmp_path)
    assert (attempt.reading, attempt.ending) == ({2: Care.ALONE}, Ending.ENGINE_LOST)
    assert [list(said) for said in answers.values()] == [[ANSWER]]


def test_the_oldest_attempt_answers_first(tmp_path: Path) -> None:
    for said, touched in (("second", 2_000), ("third", 3_000), ("first", 1_000)):
        journal = Journal(tmp_path, "job")
        journal.append([answered(REQUEST, Answer(said))])
        os.utime(journal.path, (touched, touched))
    _, answers = read_attempts(tmp_path)
    assert [answer.text for said in answers.values() for answer in said] == ["first", "second", "third"]


def test_nothing_has_come_before_where_there_is_no_folder(tmp_path: Path) -> None:
    assert read_attempts(tmp_path / "none") == ([], {})


def test_wherever_it_breaks_off_what_stands_before_is_read(tmp_path: Path) -> None:
    journal = whole(tmp_path)
    data = journal.path.read_bytes()
    known_from = data.index(b'"ended"') - len(b'\n{"end": 1}\n{')
    for end in range(len(data)):
        journal.path.write_bytes(data[:end])
        (attempt,), answers = read_attempts(tmp_path)
        assert len(answers) == (end >= known_from)
        assert set(attempt.reading) <= {1, 2}


def test_a_line_that_was_cut_short_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    journal = whole(tmp_path)
    with journal.path.open("ab") as file:
        file.write(b'{"answer": "torn')
    journal._torn = True
    journal.append([started(3, Care.TOGETHER)])
    (attempt,), _ = read_attempts(tmp_path)
    assert set(attempt.reading) == {2, 3}


@given(st.binary(max_size=200))
def test_whatever_lies_there_is_passed_over(tmp_path_factory: object, data: bytes) -> None:
    folder = Path(str(tmp_path_factory.mktemp("journal")))  # type: ignore[attr-defined]
    (folder / "0-1.jsonl").write_bytes(data)
    attempts, answers = read_attempts(folder)
    assert (len(attempts), len(answers)) == (1, 0)


def test_a_death_is_told_from_an_ending(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "job")
    journal.append([started(1, Care.TOGETHER)])
    (attempt,), _ = read_attempts(tmp_path)
    now = attempt.touched
    assert attempt.died("job", now)
    assert not attempt.died("another", now + 100)
    assert attempt.died("another", now + 200)
    journal.append([ended(Ending.LEFT)])
    (attempt,), _ = read_attempts(tmp_path)
    assert not attempt.died("job", now + 1000)
