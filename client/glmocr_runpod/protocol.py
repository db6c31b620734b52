"""RunPod's queue API as values: what to send, and what an answer means. No I/O, no clock, no randomness."""

import base64
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from glmocr_runpod.contract import ErrorInfo, JsonObject, Progress
from glmocr_runpod.effects import Break, Method, NoAnswer, Outcome, Request, Response
from glmocr_runpod.errors import ClientError, Denied, Rejected, Unreachable

RUN_BODY_LIMIT = 10_000_000
"""Bytes of a `/run` request, as the platform documents 10 MB."""
SLOWEST_BYTES_PER_S = 50_000
"""The slowest line that deadlines allow for."""
RESULT_BYTES = 12_000_000
"""A result that the platform delivers is smaller."""
TRANSIENT = frozenset({502, 503, 504})
TOO_MANY_REQUESTS = 429
MESSAGE_LIMIT = 500


class State(StrEnum):
    """States of a job that the client acts on. Any other word is a job that goes on."""

    IN_QUEUE = "IN_QUEUE"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"


FINAL = frozenset({State.COMPLETED, State.FAILED, State.CANCELLED, State.TIMED_OUT})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A job as the platform sees it at one moment."""

    job_id: str
    state: str
    output: Any = None
    error: Any = None
    execution_ms: int | None = None
    delay_ms: int | None = None

    @property
    def final(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.state in FINAL

    @property
    def progress(self) -> Progress | None:
        """How far a running job is, if it says."""
        if self.final or not isinstance(self.output, dict):
            return None
        try:
            return msgspec.convert(self.output, Progress)
        except msgspec.ValidationError:
            return None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The platform took the job."""

    job_id: str


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Certainly not taken: the same request may be repeated without paying twice."""

    message: str
    limited: bool = False
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Unclear:
    """The request went out and may have been taken."""

    message: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The platform said no; repeating changes nothing."""

    error: ClientError


@dataclass(frozen=True, slots=True)
class Gone:
    """404: the platform does not know the job, and will not know it later."""


@dataclass(frozen=True, slots=True)
class Again:
    """Nothing learnt; ask again later."""

    message: str
    retry_after_s: float | None = None


Submission: TypeAlias = Accepted | NotTaken | Unclear | Refusal
Look: TypeAlias = Snapshot | Gone | Again | Refusal


def run_body(job_input: JsonObject, policy: dict[str, int]) -> bytes:
    """The body of `/run`."""
    return msgspec.json.encode({"input": job_input, "policy": policy})


def inline(data: bytes) -> JsonObject:
    """A document that travels in the request."""
    return {"file_base64": base64.b64encode(data).decode()}


def deadline_s(size: int) -> float:
    """Seconds that `size` bytes may take on their way."""
    return 60.0 + size / SLOWEST_BYTES_PER_S


def run_request(body: bytes) -> Request:
    """Submit a job."""
    return Request(Method.POST, "run", body, deadline_s=deadline_s(len(body)), fresh=True)


def status_request(job_id: str) -> Request:
    """Ask about a job. The answer may carry the whole result."""
    return Request(Method.GET, f"status/{job_id}", deadline_s=deadline_s(RESULT_BYTES))


def cancel_request(job_id: str) -> Request:
    """Stop a job."""
    return Request(Method.POST, f"cancel/{job_id}", b"{}")


def retry_request(job_id: str) -> Request:
    """Queue a FAILED or TIMED_OUT job again under its id."""
    return Request(Method.POST, f"retry/{job_id}", b"{}", fresh=True)


def health_request() -> Request:
    """Ask about the endpoint's workers and queue."""
    return Request(Method.GET, "health", deadline_s=20.0)


def read_submission(outcome: Outcome) -> Submission:
    """What the answer to `/run` means. Anything that leaves room for a running job is `Unclear`."""
    if isinstance(outcome, NoAnswer):
        return NotTaken(outcome.message) if outcome.how is Break.NOT_SENT else Unclear(outcome.message)
    if outcome.status == TOO_MANY_REQUESTS:
        return NotTaken(server_message(outcome), limited=True, retry_after_s=retry_after_s(outcome))
    if outcome.status >= 500:
        return Unclear(server_message(outcome))
    if outcome.status >= 300:
        return Refusal(refusal(outcome))
    answer = _object(outcome.body)
    job_id = answer.get("id") if answer else None
    return Accepted(job_id) if isinstance(job_id, str) and job_id else Unclear("the answer names no job id")


def read_status(outcome: Outcome) -> Look:
    """What the answer to `/status` (or `/cancel`, `/retry`) means."""
    if isinstance(outcome, NoAnswer):
        return Again(outcome.message)
    if outcome.status in TRANSIENT or outcome.status == TOO_MANY_REQUESTS:
        return Again(server_message(outcome), retry_after_s(outcome))
    if outcome.status == 404:
        return Gone()
    if outcome.status >= 300:
        return Refusal(refusal(outcome))
    answer = _object(outcome.body)
    state = answer.get("status") if answer else None
    if answer is None or not isinstance(state, str):
        return Again("the answer is not a job's status")
    return Snapshot(
        job_id=str(answer.get("id", "")),
        state=state,
        output=answer.get("output"),
        error=answer.get("error"),
        execution_ms=_whole(answer.get("executionTime")),
        delay_ms=_whole(answer.get("delayTime")),
    )


def read_health(outcome: Outcome) -> JsonObject:
    """The endpoint's workers and queue. Raises `Denied`, `Rejected` or `Unreachable`."""
    if isinstance(outcome, NoAnswer):
        raise Unreachable(outcome.message)
    if outcome.status != 200:
        raise refusal(outcome)
    return _object(outcome.body) or {}


def refusal(response: Response) -> ClientError:
    """The error for an answer that repeating does not change, with the server's own words."""
    message = f"HTTP {response.status}: {server_message(response)}"
    return Denied(message) if response.status in (401, 403) else Rejected(message, status=response.status)


def server_message(response: Response) -> str:
    """What the server says, on one line and bounded."""
    answer = _object(response.body) or {}
    said = answer.get("error") or answer.get("message") or answer.get("detail")
    text = said if isinstance(said, str) else response.body[:MESSAGE_LIMIT].decode(errors="replace")
    return " ".join(text.split())[:MESSAGE_LIMIT] or f"HTTP {response.status} without a word"


def retry_after_s(response: Response) -> float | None:
    """Seconds the server asks to wait; a date counts from the answer's own Date. None when it does not ask."""
    value = response.headers.get("retry-after", "").strip()
    if not value:
        return None
    if value.isdigit():
        return float(value)
    try:
        then = parsedate_to_datetime(value)
        now = parsedate_to_datetime(response.headers["date"])
    except (KeyError, TypeError, ValueError):
        return None
    return max((then - now).total_seconds(), 0.0)


def failure_of(error: object) -> ErrorInfo:
    """RunPod's `error` as the contract's; anything else is kept as text under `unknown_error`, not retryable."""
    if isinstance(error, str):
        try:
            return msgspec.json.decode(error, type=ErrorInfo)
        except msgspec.MsgspecError:
            return ErrorInfo(code="unknown_error", message=error[:MESSAGE_LIMIT])
    try:
        return msgspec.convert(error, ErrorInfo)
    except msgspec.ValidationError:
        return ErrorInfo(code="unknown_error", message=str(error)[:MESSAGE_LIMIT])


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return answer if isinstance(answer, dict) else None


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) else None
