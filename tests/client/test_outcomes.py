"""The outcome table of docs/client.md, row by row, over the real emulator with a clock that both sides share."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from glmocr_runpod import Client, Consent
from glmocr_runpod.contract import Delivery, JsonObject
from glmocr_runpod.effects import Outcome, Request, Response
from glmocr_runpod.errors import (
    Ambiguous,
    Cancelled,
    ClientError,
    Denied,
    JobFailed,
    Lost,
    RateLimited,
    Rejected,
    SourceError,
    TimedOut,
    Unreachable,
)
from glmocr_runpod.resume import Stage
from glmocr_runpod.transport import RequestsTransport

from emulator.faults import Fault, FaultKind
from emulator.jobs import Job
from handler.schema import ErrorCode, ErrorInfo
from tests.client.rig import Answer, Rig, VirtualTime, read, result_for

DOCUMENT = b"%PDF-1.7 pretend"
HOUR_S = 3600
DAY_S = 24 * 3600.0
EVERYTHING = frozenset(Consent)


class Hurried:
    """The real transport with shorter deadlines: they are real seconds, unlike all other time here."""

    def __init__(self, rig: Rig) -> None:
        self._inner = RequestsTransport(rig.config.base_url, rig.config.runpod_api_key)
        self.change: Callable[[Request, Outcome], Outcome] = lambda request, outcome: outcome

    def send(self, request: Request) -> Outcome:
        return self.change(request, self._inner.send(dataclasses.replace(request, deadline_s=0.4)))

    def close(self) -> None:
        self._inner.close()


class Shelf:
    """A result store in memory."""

    def __init__(self, results: dict[str, bytes] | None = None) -> None:
        self.results = results or {}
        self.away = 0
        """So many questions are not answered."""

    def fetch(self, delivery: Delivery, key: str) -> bytes | None:
        return self.find(key)

    def find(self, content_key: str) -> bytes | None:
        if self.away:
            self.away -= 1
            raise Unreachable("the storage does not answer")
        return self.results.get(content_key)

    def upload(self, name: str, data: bytes, digest: str) -> JsonObject:
        raise AssertionError("nothing here is large")


class Desk:
    """A client on the shared clock; every call is a new client on the same state directory, as after a restart."""

    def __init__(self, rig: Rig, time: VirtualTime) -> None:
        self.rig = rig
        self.time = time
        self.shelf = Shelf()
        self.transport = Hurried(rig)

    def parse(self, *consents: Consent, answer: Answer | None = None) -> Any:
        resubmit = consents or (Consent.FAILED,)
        with (
            self.rig.worker(answer or self.after(20)),
            Client(
                config=self.rig.config,
                clock=self.time,
                transport=self.transport,
                storage=self.shelf,
                resubmit=resubmit,
            ) as client,
        ):
            return client.parse(DOCUMENT, name="a.pdf")

    def fails(self, kind: type[ClientError], *consents: Consent, answer: Answer | None = None) -> ClientError:
        with pytest.raises(kind) as caught:
            self.parse(*consents, answer=answer)
        assert type(caught.value) is kind
        return caught.value

    def fault(self, kind: FaultKind, operation: str, **more: Any) -> None:
        self.rig.do(lambda: self.rig.emulator.faults.add(Fault(kind, operation, **more)))

    def heal(self) -> None:
        self.rig.do(self.rig.emulator.faults.clear)

    def after(self, seconds: float) -> Answer:
        async def answer(job: Job) -> dict[str, Any]:
            await self.rig.emulator.clock.sleep(seconds)
            return await read(job)

        return answer

    @property
    def jobs(self) -> int:
        return len(self.rig.jobs())

    def leave_result(self, job: Job) -> None:
        output = result_for(job.input)
        self.shelf.results[output["document"]["content_key"]] = json.dumps(output).encode()


@pytest.fixture
def desk(still: Rig, time: VirtualTime) -> Desk:
    return Desk(still, time)


def failing(code: ErrorCode, *, retryable: bool, times: int = 99) -> Answer:
    async def answer(job: Job) -> dict[str, Any]:
        if job.caller_retries >= times:
            return await read(job)
        return {"error": ErrorInfo(code=code, message="as it is", retryable=retryable).model_dump_json()}

    return answer


def test_undisturbed(desk: Desk) -> None:
    document = desk.parse()
    assert document.output.document.filename == "a.pdf"
    assert desk.jobs == 1


def test_a_job_of_300_s_costs_at_most_60_calls_and_is_seen_in_time(desk: Desk) -> None:
    desk.parse(answer=desk.after(300))
    assert desk.rig.do(lambda: desk.rig.emulator.requests["status"]) <= 60
    assert desk.time.steady() <= 330


def test_the_policy_of_a_document_nobody_can_count(desk: Desk) -> None:
    desk.parse()
    (job,) = desk.rig.jobs()
    assert (job.policy.execution_timeout_s, job.policy.ttl_s) == (4500, 4500 + DAY_S)


def test_a_stored_document_is_read_anew_with_consent_only(desk: Desk) -> None:
    desk.parse()
    desk.parse(Consent.FAILED, Consent.LOST, Consent.REFUSED, Consent.AMBIGUOUS)
    assert desk.jobs == 1
    desk.parse(Consent.STORED)
    assert desk.jobs == 2
    desk.parse()
    assert desk.jobs == 2


def test_stored_result_costs_no_request(desk: Desk) -> None:
    desk.parse()
    seen = desk.rig.do(lambda: desk.rig.emulator.requests.total())
    assert desk.parse().output.status == "partial"
    assert desk.rig.do(lambda: desk.rig.emulator.requests.total()) == seen


@pytest.mark.parametrize(
    ("operation", "kind", "more"),
    [
        ("run", FaultKind.STATUS, {"status": 429, "times": 4, "retry_after": 30.0}),
        ("status", FaultKind.STATUS, {"status": 429, "times": 8}),
        ("status", FaultKind.STATUS, {"status": 502, "times": 8}),
        ("status", FaultKind.STATUS, {"status": 503, "times": 1}),
        ("status", FaultKind.STATUS, {"status": 504, "times": 1}),
        ("status", FaultKind.RESET, {"times": 3}),
        ("status", FaultKind.LOST_RESPONSE, {"times": 3}),
        ("status", FaultKind.HALF_RESPONSE, {"times": 2}),
        ("status", FaultKind.SLOW_RESPONSE, {"times": 2}),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_disturbances_that_pass(desk: Desk, operation: str, kind: FaultKind, more: dict[str, Any]) -> None:
    desk.fault(kind, operation, **more)
    assert desk.parse().output.document is not None
    assert desk.jobs == 1


def test_429_waits_as_long_as_the_server_asks(desk: Desk) -> None:
    desk.fault(FaultKind.STATUS, "run", status=429, times=1, retry_after=77.0)
    desk.parse()
    assert 77.0 in desk.time.waits


def test_429_for_ever_gives_up_and_submits_later(desk: Desk) -> None:
    desk.fault(FaultKind.STATUS, "run", status=429)
    desk.fails(RateLimited)
    assert desk.rig.do(lambda: desk.rig.emulator.requests["run"]) == 6
    assert desk.jobs == 0
    desk.heal()
    desk.parse()
    assert desk.jobs == 1


def test_no_connection_gives_up_and_submits_later(desk: Desk) -> None:
    desk.transport._inner = RequestsTransport("http://127.0.0.1:9/v2/x", "key")
    desk.fails(Unreachable)
    assert [round(wait / middle) for wait, middle in zip(desk.time.waits, (10, 20, 40, 120, 120), strict=True)] == [
        1
    ] * 5
    desk.transport = Hurried(desk.rig)
    desk.parse()
    assert desk.jobs == 1


@pytest.mark.parametrize(
    ("kind", "more", "taken"),
    [
        (FaultKind.RESET, {}, 0),
        (FaultKind.STATUS, {"status": 502}, 0),
        (FaultKind.STATUS, {"status": 500}, 0),
        (FaultKind.LOST_RESPONSE, {}, 1),
        (FaultKind.HALF_RESPONSE, {}, 1),
        (FaultKind.SLOW_RESPONSE, {}, 1),
    ],
)
def test_a_submission_without_an_answer_is_ambiguous(desk: Desk, kind: FaultKind, more: Any, taken: int) -> None:
    desk.fault(kind, "run", times=1, **more)
    desk.fails(Ambiguous)
    desk.fails(Ambiguous)
    desk.fails(Ambiguous, Consent.FAILED, Consent.LOST, Consent.REFUSED)
    assert desk.jobs == taken
    desk.parse(Consent.AMBIGUOUS)
    assert desk.jobs == taken + 1


def test_an_ambiguous_job_whose_result_was_left_in_storage(desk: Desk) -> None:
    desk.fault(FaultKind.LOST_RESPONSE, "run", times=1)
    desk.fails(Ambiguous)
    desk.leave_result(desk.rig.jobs()[0])
    assert desk.parse().output.document is not None
    assert desk.jobs == 1


def interrupted(desk: Desk) -> Job:
    """A submitted job whose client has died."""
    with Client(config=desk.rig.config, clock=desk.time, transport=desk.transport) as client:
        client.submit(DOCUMENT, name="a.pdf")
    (job,) = desk.rig.jobs()
    return job


def test_a_live_job_is_attached_to(desk: Desk) -> None:
    interrupted(desk)
    desk.parse()
    assert desk.jobs == 1


def finished_and_forgotten(desk: Desk) -> Job:
    job = interrupted(desk)
    with desk.rig.worker(read):
        desk.rig.call(desk.rig.emulator.wait_job(job.id))
    desk.time.wait(31 * 60, None)  # type: ignore[arg-type]
    return job


def test_404_after_31_minutes_without_a_stored_result(desk: Desk) -> None:
    finished_and_forgotten(desk)
    error = desk.fails(Lost)
    assert error.reference
    desk.fails(Lost)
    desk.fails(Lost, Consent.FAILED, Consent.AMBIGUOUS, Consent.REFUSED)
    assert desk.jobs == 1
    desk.parse(Consent.LOST)
    assert desk.jobs == 2


def test_404_after_31_minutes_with_a_stored_result(desk: Desk) -> None:
    job = finished_and_forgotten(desk)
    desk.leave_result(job)
    assert desk.parse().output.document is not None
    assert desk.jobs == 1


def test_storage_that_is_away_is_asked_again(desk: Desk) -> None:
    desk.leave_result(finished_and_forgotten(desk))
    desk.shelf.away = 8
    desk.fails(Unreachable)
    desk.parse()
    assert desk.jobs == 1


def test_a_result_of_another_document_is_not_taken(desk: Desk) -> None:
    job = finished_and_forgotten(desk)
    desk.leave_result(job)
    (key,) = desk.shelf.results
    wrong = json.loads(desk.shelf.results[key])
    wrong["document"]["content_key"] = "0" * 64
    desk.shelf.results[key] = json.dumps(wrong).encode()
    desk.fails(Lost)


@pytest.mark.parametrize("left", [b"{", b'{"schema_version": "9"}'])
def test_a_stored_result_that_is_none_does_not_bar_the_way(desk: Desk, left: bytes) -> None:
    job = finished_and_forgotten(desk)
    desk.leave_result(job)
    (key,) = desk.shelf.results
    desk.shelf.results[key] = left
    desk.fails(Lost)
    desk.parse(Consent.LOST)
    assert desk.jobs == 2


def test_a_failure_left_in_storage_is_not_taken_for_this_jobs_result(desk: Desk) -> None:
    job = finished_and_forgotten(desk)
    desk.leave_result(job)
    (key,) = desk.shelf.results
    desk.shelf.results[key] = json.dumps(json.loads(desk.shelf.results[key]) | {"status": "failed"}).encode()
    desk.fails(Lost)


@pytest.mark.parametrize("stored", [True, False])
def test_completed_without_output(desk: Desk, stored: bool) -> None:
    async def refused(job: Job) -> dict[str, Any]:
        return {}

    if stored:
        desk.leave_result(interrupted(desk))
        desk.parse(answer=refused)
    else:
        assert "did not keep its result" in desk.fails(Lost, answer=refused).message
    assert desk.jobs == 1


@pytest.mark.parametrize("jump", [DAY_S, -DAY_S, 400 * DAY_S])
def test_the_wall_clock_jumps_between_two_calls(desk: Desk, jump: float) -> None:
    interrupted(desk)
    desk.time.jump = jump
    desk.parse()
    assert desk.jobs == 1


@pytest.mark.parametrize("jump", [DAY_S, -DAY_S])
def test_the_wall_clock_jumps_while_waiting(desk: Desk, jump: float) -> None:
    async def answer(job: Job) -> dict[str, Any]:
        desk.time.jump = jump
        return await desk.after(30)(job)

    desk.parse(answer=answer)
    assert desk.jobs == 1
    assert max(desk.time.waits) <= 60


def test_network_away_until_the_jobs_ttl(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glmocr_runpod.schedule.QUEUE_S", HOUR_S)
    interrupted(desk)
    desk.fault(FaultKind.RESET, "status")
    desk.fails(Unreachable)
    assert sum(desk.time.waits) > HOUR_S
    assert desk.jobs == 1


def test_a_life_in_the_queue_ends_in_404(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glmocr_runpod.schedule.QUEUE_S", HOUR_S)
    job = interrupted(desk)
    with Client(config=desk.rig.config, clock=desk.time, transport=desk.transport) as client, pytest.raises(Lost):
        client.parse(DOCUMENT, name="a.pdf")
    assert desk.time.steady() >= job.policy.ttl_s
    assert desk.jobs == 1


@pytest.mark.parametrize(
    ("status", "kind"), [(401, Denied), (403, Denied), (400, Rejected), (409, Rejected), (500, Rejected)]
)
def test_a_refused_status_call_fails_at_once_and_loses_nothing(desk: Desk, status: int, kind: Any) -> None:
    interrupted(desk)
    desk.fault(FaultKind.STATUS, "status", status=status)
    assert f"injected {status}" in desk.fails(kind).message
    assert desk.rig.do(lambda: desk.rig.emulator.requests["status"]) == 1
    desk.heal()
    desk.parse()
    assert desk.jobs == 1


@pytest.mark.parametrize(("status", "kind"), [(400, Rejected), (401, Denied), (413, Rejected)])
def test_a_refused_submission_fails_at_once(desk: Desk, status: int, kind: Any) -> None:
    desk.fault(FaultKind.STATUS, "run", status=status, times=1)
    assert f"injected {status}" in desk.fails(kind).message
    assert desk.rig.do(lambda: desk.rig.emulator.requests["run"]) == 1
    desk.parse()
    assert desk.jobs == 1


def test_a_passing_failure_is_queued_again_under_its_id(desk: Desk) -> None:
    desk.parse(answer=failing(ErrorCode.ENGINE_UNAVAILABLE, retryable=True, times=2))
    (job,) = desk.rig.jobs()
    assert job.caller_retries == 2


def test_a_passing_failure_that_does_not_pass_is_bounded(desk: Desk) -> None:
    error = desk.fails(JobFailed, answer=failing(ErrorCode.ENGINE_UNAVAILABLE, retryable=True))
    assert isinstance(error, JobFailed)
    assert error.worker_code == "engine_unavailable"
    assert [job.caller_retries for job in desk.rig.jobs()] == [2]
    desk.parse()
    assert [job.caller_retries for job in desk.rig.jobs()] == [3]


@pytest.mark.parametrize("status", [404, 400])
def test_where_the_platform_refuses_retry_the_job_is_sent_anew(desk: Desk, status: int) -> None:
    desk.fault(FaultKind.STATUS, "retry", status=status, times=1)
    first = failing(ErrorCode.STORAGE_UNAVAILABLE, retryable=True)

    async def answer(job: Job) -> dict[str, Any]:
        return await (first if job is desk.rig.emulator.jobs()[0] else read)(job)

    desk.parse(answer=answer)
    assert desk.jobs == 2


def test_a_retry_that_was_taken_without_an_answer(desk: Desk) -> None:
    desk.fault(FaultKind.LOST_RESPONSE, "retry", times=1)
    desk.parse(answer=failing(ErrorCode.STORAGE_UNAVAILABLE, retryable=True, times=1))
    assert [job.caller_retries for job in desk.rig.jobs()] == [1]


def test_a_failed_job_whose_result_was_left_in_storage_after_all(desk: Desk) -> None:
    desk.fails(JobFailed, Consent.LOST, answer=failing(ErrorCode.ENGINE_UNAVAILABLE, retryable=True))
    [job] = desk.rig.jobs()
    desk.leave_result(job)
    desk.parse()
    assert [job.caller_retries for job in desk.rig.jobs()] == [0]


def test_a_retry_nobody_answers_is_no_reason_for_a_second_job(desk: Desk) -> None:
    answer = failing(ErrorCode.STORAGE_UNAVAILABLE, retryable=True, times=1)
    desk.fault(FaultKind.STATUS, "retry", status=502)
    desk.fails(Unreachable, answer=answer)
    assert desk.jobs == 1
    desk.heal()
    desk.parse(answer=answer)
    assert [job.caller_retries for job in desk.rig.jobs()] == [1]


def test_waiting_without_the_documents_bytes_changes_nothing(desk: Desk) -> None:
    interrupted(desk)
    answer = failing(ErrorCode.STORAGE_UNAVAILABLE, retryable=True)
    desk.fault(FaultKind.STATUS, "retry", status=404, times=1)
    with (
        desk.rig.worker(answer),
        Client(config=desk.rig.config, clock=desk.time, transport=desk.transport) as client,
        pytest.raises(SourceError, match="call parse"),
    ):
        client.attach(client.ledger.plans()[0][0])
    desk.parse(answer=failing(ErrorCode.STORAGE_UNAVAILABLE, retryable=True, times=1))
    assert [job.caller_retries for job in desk.rig.jobs()] == [1]


def test_a_lasting_failure_is_reported_and_remembered(desk: Desk) -> None:
    answer = failing(ErrorCode.DOCUMENT_UNREADABLE, retryable=False)
    desk.fails(JobFailed, answer=answer)
    seen = desk.rig.do(lambda: desk.rig.emulator.requests.total())
    error = desk.fails(JobFailed, answer=answer)
    assert error.message == "as it is"
    assert desk.rig.do(lambda: desk.rig.emulator.requests.total()) == seen
    desk.parse(Consent.REFUSED)
    assert desk.jobs == 2


def test_a_failure_that_an_option_answers_is_sent_again(desk: Desk) -> None:
    desk.fails(JobFailed, answer=failing(ErrorCode.PASSWORD_REQUIRED, retryable=False))
    desk.parse()
    assert desk.jobs == 2


def test_without_consent_a_passing_failure_is_not_repeated(desk: Desk) -> None:
    desk.fails(JobFailed, Consent.LOST, answer=failing(ErrorCode.ENGINE_UNAVAILABLE, retryable=True))
    assert [job.caller_retries for job in desk.rig.jobs()] == [0]


def test_a_job_over_its_time_is_queued_again_and_bounded(desk: Desk) -> None:
    desk.fails(TimedOut, answer=desk.after(DAY_S))
    assert [job.caller_retries for job in desk.rig.jobs()] == [2]


def test_a_job_cancelled_elsewhere(desk: Desk) -> None:
    async def answer(job: Job) -> dict[str, Any]:
        desk.rig.emulator.queue.cancel(job)
        return await read(job)

    desk.fails(Cancelled, answer=answer)
    desk.parse()
    assert desk.jobs == 2


def test_unknown_states_go_on(desk: Desk) -> None:
    strange = iter(["WARMING_UP", "MIGRATING"])

    def change(request: Request, outcome: Outcome) -> Outcome:
        state = next(strange, None) if request.path.startswith("status/") else None
        return Response(200, json.dumps({"id": "x", "status": state}).encode()) if state else outcome

    desk.transport.change = change
    desk.parse()
    assert desk.jobs == 1


def test_a_result_that_is_none_leaves_the_job_attached(desk: Desk) -> None:
    async def nonsense(job: Job) -> dict[str, Any]:
        return {"output": {"text": "from some other worker"}}

    with pytest.raises(ClientError, match="contract version 1"):
        desk.parse(answer=nonsense)
    with Client(config=desk.rig.config) as client:
        (entry,) = client.ledger.entries()
        kept = client.ledger.load(f"{entry.key}.undelivered")
    assert entry.stage is Stage.SUBMITTED
    assert json.loads(kept or b"") == {"text": "from some other worker"}


def test_a_result_is_kept_though_its_figures_cannot_be_fetched_just_now(desk: Desk) -> None:
    figure = {"name": "figures/1.jpg", "media_type": "image/jpeg", "size": 4, "key": "glmocr/1", "data": None}

    async def answer(job: Job) -> dict[str, Any]:
        output = result_for(job.input)
        output["artifacts"] = [figure | {"sha256": hashlib.sha256(b"jpeg").hexdigest()}]
        return {"output": output}

    desk.shelf.results["glmocr/1"] = b"jpeg"
    desk.shelf.away = 6
    assert [artifact.name for artifact in desk.parse(answer=answer).absent] == ["figures/1.jpg"]
    assert desk.parse().absent == ()
    assert desk.jobs == 1


def test_the_ledger_of_a_document_of_which_nothing_could_be_read_comes_with_its_failure(desk: Desk) -> None:
    async def answer(job: Job) -> dict[str, Any]:
        details = {"pages": 4, "reference": "not ours"}
        error = ErrorInfo(code=ErrorCode.NO_PAGE_READABLE, message="none", retryable=False, details=details)
        return {"output": result_for(job.input) | {"status": "failed"}, "error": error.model_dump_json()}

    error = desk.fails(JobFailed, answer=answer)
    assert error.details["pages"] == 4
    assert error.details["debug"]["log"] == ["one line"]
    assert [page["page"] for page in error.details["output"]["pages"]] == [1, 2, 3, 10]


def test_a_removed_result_is_fetched_again_while_the_platform_has_it(desk: Desk) -> None:
    desk.parse()
    for blob in (desk.rig.state / "blobs").iterdir():
        blob.unlink()
    desk.parse()
    assert desk.jobs == 1
