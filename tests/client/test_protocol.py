"""What answers mean: the table of the queue API, without any I/O."""

import json
from typing import Any

import pytest
from glmocr_runpod.effects import Break, NoAnswer, Response
from glmocr_runpod.errors import Denied, Rejected
from glmocr_runpod.protocol import (
    FINAL,
    Accepted,
    Again,
    Gone,
    NotTaken,
    Refusal,
    Snapshot,
    Unclear,
    failure_of,
    read_status,
    read_submission,
    retry_after_s,
    run_request,
)


def answer(status: int, body: Any = None, **headers: str) -> Response:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Response(status, data, {name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("outcome", "meaning"),
    [
        (answer(200, {"id": "j1", "status": "IN_QUEUE"}), Accepted("j1")),
        (NoAnswer(Break.NOT_SENT, "refused"), NotTaken("refused")),
        (NoAnswer(Break.BROKEN, "reset"), Unclear("reset")),
        (NoAnswer(Break.TIMEOUT, "slow"), Unclear("slow")),
        (answer(429, {"error": "busy"}), NotTaken("busy", limited=True)),
        (answer(429, {"error": "busy"}, retry_after="7"), NotTaken("busy", limited=True, retry_after_s=7)),
        (answer(500, {"error": "oops"}), Unclear("oops")),
        (answer(502, b"<html>bad gateway</html>"), Unclear("<html>bad gateway</html>")),
        (answer(200, b'{"id": "j'), Unclear("the answer names no job id")),
        (answer(200, {"status": "IN_QUEUE"}), Unclear("the answer names no job id")),
        (answer(200, [1]), Unclear("the answer names no job id")),
    ],
)
def test_submission(outcome: Response | NoAnswer, meaning: object) -> None:
    assert read_submission(outcome) == meaning


@pytest.mark.parametrize(
    ("status", "kind"), [(400, Rejected), (401, Denied), (403, Denied), (404, Rejected), (307, Rejected)]
)
def test_a_refused_submission_has_the_servers_words(status: int, kind: type[Exception]) -> None:
    meaning = read_submission(answer(status, {"error": "input  must be\nan object"}))
    assert isinstance(meaning, Refusal)
    assert isinstance(meaning.error, kind)
    assert "input must be an object" in meaning.error.message


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_status_call_is_repeated(status: int) -> None:
    assert isinstance(read_status(answer(status, {"error": "later"})), Again)


@pytest.mark.parametrize("how", Break)
def test_a_status_call_without_an_answer_is_repeated(how: Break) -> None:
    assert read_status(NoAnswer(how, "x")) == Again("x")


def test_half_a_status_is_no_status() -> None:
    assert isinstance(read_status(answer(200, b'{"id": "1", "status": "COMP')), Again)


def test_an_unknown_job_is_gone() -> None:
    assert read_status(answer(404, {"error": "job not found"})) == Gone()


@pytest.mark.parametrize("status", [400, 401, 409, 500])
def test_any_other_refusal_of_a_status_call_is_final(status: int) -> None:
    assert isinstance(read_status(answer(status, {})), Refusal)


@pytest.mark.parametrize("state", ["IN_QUEUE", "IN_PROGRESS", "RUNNING", "SOMETHING_NEW"])
def test_states_that_go_on(state: str) -> None:
    look = read_status(answer(200, {"id": "1", "status": state}))
    assert isinstance(look, Snapshot)
    assert not look.final


@pytest.mark.parametrize("state", sorted(FINAL))
def test_final_states_and_their_figures(state: str) -> None:
    wire = {"id": "1", "status": state, "output": {"pages_done": 1}, "executionTime": 1500, "delayTime": 20.0}
    look = read_status(answer(200, wire))
    assert look == Snapshot("1", state, {"pages_done": 1}, None, 1500, 20)
    assert look.final
    assert look.progress is None


def test_progress_is_read_only_from_a_running_job() -> None:
    wire = {"pages_done": 3, "pages_total": 12, "regions_done": 40, "running": 14, "queued": 2, "new": 1}
    look = read_status(answer(200, {"id": "1", "status": "IN_PROGRESS", "output": wire}))
    assert isinstance(look, Snapshot)
    assert look.progress is not None
    assert look.progress.pages_total == 12
    other = read_status(answer(200, {"id": "1", "status": "IN_PROGRESS", "output": "3 of 4"}))
    assert isinstance(other, Snapshot)
    assert other.progress is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry_after": "12"}, 12),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "Sun, 29 Nov 2026 16:00:30 GMT", "date": "Sun, 29 Nov 2026 16:00:00 GMT"}, 30),
        ({"retry_after": "Sun, 29 Nov 2026 15:00:00 GMT", "date": "Sun, 29 Nov 2026 16:00:00 GMT"}, 0),
        ({"retry_after": "Sun, 29 Nov 2026 16:00:30 GMT"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(answer(429, {}, **headers)) == seconds


def test_a_submission_has_its_own_connection_and_a_deadline_by_size() -> None:
    request = run_request(b"x" * 10_000_000)
    assert request.fresh
    assert request.deadline_s == 260
    assert "xxx" not in repr(request)


def test_an_unstructured_error_is_kept_as_text() -> None:
    error = failure_of("Traceback: boom")
    assert (error.code, error.message, error.retryable) == ("unknown_error", "Traceback: boom", False)
    assert failure_of({"code": "engine_unavailable", "message": "m", "retryable": True}).retryable
    assert failure_of(None).code == "unknown_error"
