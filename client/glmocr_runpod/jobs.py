"""One job: submitted once, watched to its end, its result on disk before anything is forgotten.

Flows only (see `effects`): every decision that can be a pure function is one, in `resume`, `protocol` and `schedule`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from glmocr_runpod.contract import ErrorInfo, JsonObject
from glmocr_runpod.delivery import ResultStore, receive
from glmocr_runpod.effects import Flow, call, pause, send
from glmocr_runpod.errors import (
    Ambiguous,
    Cancelled,
    ClientError,
    JobFailed,
    Lost,
    RateLimited,
    TimedOut,
    Undelivered,
    Unreachable,
)
from glmocr_runpod.events import Finished, Observer, Submitted, Waiting, Watched
from glmocr_runpod.ledger import Ledger
from glmocr_runpod.protocol import (
    Accepted,
    Again,
    Gone,
    NotTaken,
    Refusal,
    Snapshot,
    State,
    Unclear,
    failure_of,
    read_status,
    read_submission,
    retry_request,
    run_body,
    run_request,
    status_request,
)
from glmocr_runpod.resume import Consents, Entry, Stage, Step, may_requeue, next_step, without_result
from glmocr_runpod.schedule import Policy, patient_delay, poll_delay, retry_delay

LEASE_POLL_S = 0.3
TIMED_OUT = ErrorInfo(code="timed_out", message="the job ran longer than its limit", retryable=True)


class Time(Protocol):
    """The clock, as far as flows read it."""

    def wall(self) -> float:
        """Seconds since 1970; may jump."""

    def steady(self) -> float:
        """Seconds that never jump, within this process."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What every job works with."""

    ledger: Ledger
    time: Time
    random: Callable[[], float]
    observer: Observer
    consents: Consents
    store: ResultStore | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """One submission. `body` makes its input when it is needed: a job that is only resumed never reads its document."""

    key: str
    content_key: str
    name: str
    policy: Policy
    body: Callable[[], JsonObject] = field(repr=False)


def run_job(desk: Desk, job: Job) -> Flow[bytes]:
    """The JSON of the job's result, from the ledger, a live job or a new one. Raises a `ClientError`."""
    entry = yield from secure(desk, job)
    while entry.stage is not Stage.STORED:
        look = yield from watch(desk, entry)
        entry = yield from settle(desk, job, entry, look)
    data = yield from call(lambda: desk.ledger.load(job.key))
    if data is None:
        raise Undelivered("the result was removed from the state directory while it was read", reference=job.key)
    return data


def secure(desk: Desk, job: Job) -> Flow[Entry]:
    """A job that is submitted or stored: found, or made by this call alone."""
    while True:
        lease = desk.ledger.lease(job.key)
        if lease is not None:
            with lease:
                return (yield from _resume(desk, job))
        entry = desk.ledger.get(job.key)
        if entry is not None and entry.stage is Stage.SUBMITTED:
            return entry
        yield from pause(LEASE_POLL_S)


def _resume(desk: Desk, job: Job) -> Flow[Entry]:
    entry = desk.ledger.get(job.key)
    step = next_step(entry, desk.consents, result_on_disk=_on_disk(desk, entry))
    if entry is None or step is Step.SUBMIT:
        return (yield from submit(desk, job, entry))
    if step is Step.SEARCH:
        found = yield from _search(desk, entry)
        if found is not None:
            return found
        step = without_result(entry.stage, desk.consents)
        if step is Step.SUBMIT:
            return (yield from submit(desk, job, entry))
    if step is Step.REPORT:
        raise _error_of(desk, entry)
    if step is Step.REQUEUE:
        return (yield from requeue(desk, job, msgspec.structs.replace(entry, runs=0)))
    return entry


def submit(desk: Desk, job: Job, known: Entry | None, *, runs: int = 0) -> Flow[Entry]:
    """Send the job, once. The caller holds its lease. Raises `Ambiguous` when it may or may not have been taken."""
    entry = Entry(
        key=job.key,
        content_key=job.content_key,
        name=job.name,
        stage=Stage.INTENDED,
        idempotency_key=f"{job.key[:32]}-{(known.total_runs if known else 0) + 1}",
        runs=runs + 1,
        total_runs=(known.total_runs if known else 0) + 1,
        ttl_s=job.policy.ttl_s,
        execution_ms=known.execution_ms if known else 0,
    )
    desk.ledger.put(entry)
    body = yield from call(lambda: run_body(job.body() | {"idempotency_key": entry.idempotency_key}, job.policy.wire()))
    attempt = 0
    while True:
        desk.ledger.put(msgspec.structs.replace(entry, stage=Stage.SENDING))
        submission = read_submission((yield from send(run_request(body))))
        match submission:
            case Accepted(job_id):
                return _submitted(desk, entry, job_id)
            case Unclear(message):
                desk.ledger.put(msgspec.structs.replace(entry, stage=Stage.AMBIGUOUS))
                raise Ambiguous(f"{' '.join((Ambiguous.__doc__ or '').split())} ({message})", reference=job.key)
            case Refusal(error):
                desk.ledger.put(msgspec.structs.replace(entry, stage=Stage.INTENDED))
                error.reference = job.key
                raise error
            case NotTaken(message, limited, retry_after):
                desk.ledger.put(msgspec.structs.replace(entry, stage=Stage.INTENDED))
                delay = retry_delay(attempt, desk.random(), retry_after)
                if delay is None:
                    raise (RateLimited if limited else Unreachable)(message, reference=job.key)
                desk.observer(Waiting(job.key, message, delay))
                yield from pause(delay)
                attempt += 1


def _submitted(desk: Desk, entry: Entry, job_id: str) -> Entry:
    entry = msgspec.structs.replace(entry, stage=Stage.SUBMITTED, job_id=job_id, submitted_at=desk.time.wall())
    desk.ledger.put(entry)
    desk.observer(Submitted(entry.key, job_id))
    return entry


def watch(desk: Desk, entry: Entry) -> Flow[Snapshot | Gone]:
    """Ask until the job is final or unknown. A server that answers knows better than our clock how long to go on."""
    waited = max(desk.time.wall() - (entry.submitted_at or desk.time.wall()), 0.0)
    begun = desk.time.steady()
    calls = failures = 0
    delay = poll_delay(0, waited) if waited < LEASE_POLL_S else 0.0
    while True:
        yield from pause(delay)
        look = read_status((yield from send(status_request(entry.job_id or ""))))
        elapsed = waited + desk.time.steady() - begun
        match look:
            case Gone():
                return look
            case Refusal(error):
                error.reference = entry.key
                raise error
            case Again(message, retry_after):
                delay = patient_delay(failures, desk.random(), retry_after)
                failures += 1
                if desk.time.steady() - begun > entry.ttl_s:
                    raise Unreachable(message, reference=entry.key)
                desk.observer(Waiting(entry.key, message, delay))
            case Snapshot():
                if look.final:
                    return look
                calls, failures = calls + 1, 0
                delay = poll_delay(calls, elapsed, look.progress)
                desk.observer(Watched(entry.key, look.state, elapsed, look.progress))


def settle(desk: Desk, job: Job, entry: Entry, look: Snapshot | Gone) -> Flow[Entry]:
    """What a final state means for the ledger: a stored result, a job queued again, or an error."""
    if isinstance(look, Gone) or (look.state == State.COMPLETED and look.output is None):
        return (yield from _lost(desk, entry, look))
    if look.state == State.COMPLETED:
        return (yield from _store(desk, entry, look.output, look.execution_ms or 0))
    if look.state == State.CANCELLED:
        desk.ledger.put(msgspec.structs.replace(entry, stage=Stage.CANCELLED))
        raise Cancelled(reference=entry.key)
    error = TIMED_OUT if look.state == State.TIMED_OUT else failure_of(look.error)
    if not may_requeue(entry, error, desk.consents):
        failed = msgspec.structs.replace(
            entry, stage=Stage.FAILED, error=error, execution_ms=entry.execution_ms + (look.execution_ms or 0)
        )
        desk.ledger.put(failed)
        raise _error_of(desk, failed, debug=look.output)
    while True:
        lease = desk.ledger.lease(job.key)
        if lease is None:
            yield from pause(LEASE_POLL_S)
            continue
        with lease:
            now = desk.ledger.get(job.key) or entry
            if now.total_runs != entry.total_runs:
                return now
            return (yield from requeue(desk, job, entry, spent_ms=look.execution_ms or 0))


def requeue(desk: Desk, job: Job, entry: Entry, *, spent_ms: int = 0) -> Flow[Entry]:
    """Run a failed job again: under its id where the platform allows, else as a new one. The caller holds the lease."""
    entry = msgspec.structs.replace(entry, execution_ms=entry.execution_ms + spent_ms)
    again = msgspec.structs.replace(
        entry, stage=Stage.SUBMITTED, runs=entry.runs + 1, total_runs=entry.total_runs + 1, error=None
    )
    for attempt in range(3):
        look = read_status((yield from send(retry_request(entry.job_id or ""))))
        if isinstance(look, Snapshot):
            again = msgspec.structs.replace(again, submitted_at=desk.time.wall())
            desk.ledger.put(again)
            desk.observer(Submitted(entry.key, entry.job_id or ""))
            return again
        # A repetition answered by a refusal may mean that the first one was taken: its state tells.
        now = read_status((yield from send(status_request(entry.job_id or ""))))
        if isinstance(now, Snapshot) and now.state not in (State.FAILED, State.TIMED_OUT):
            desk.ledger.put(again)
            return again
        if isinstance(look, Again):
            yield from pause(patient_delay(attempt, desk.random(), look.retry_after_s))
            continue
        break
    return (yield from submit(desk, job, entry, runs=entry.runs))


def _store(desk: Desk, entry: Entry, output: Any, execution_ms: int) -> Flow[Entry]:
    try:
        data = yield from receive(output, desk.store)
    except ClientError as error:
        error.reference = entry.key
        raise
    return (yield from _keep(desk, entry, data, execution_ms))


def _keep(desk: Desk, entry: Entry, data: bytes, execution_ms: int) -> Flow[Entry]:
    yield from call(lambda: desk.ledger.save(entry.key, data))
    stored = msgspec.structs.replace(entry, stage=Stage.STORED, execution_ms=entry.execution_ms + execution_ms)
    desk.ledger.put(stored)
    desk.observer(Finished(entry.key, stored.execution_ms))
    return stored


def _lost(desk: Desk, entry: Entry, look: Snapshot | Gone) -> Flow[Entry]:
    found = yield from _search(desk, entry)
    if found is not None:
        return found
    lost = msgspec.structs.replace(entry, stage=Stage.LOST)
    desk.ledger.put(lost)
    raise _error_of(desk, lost, refused=isinstance(look, Snapshot))


def _search(desk: Desk, entry: Entry) -> Flow[Entry | None]:
    store = desk.store
    if store is None:
        return None
    data = yield from call(lambda: store.find(entry.content_key))
    return None if data is None else (yield from _keep(desk, entry, data, 0))


def _on_disk(desk: Desk, entry: Entry | None) -> bool:
    return entry is not None and entry.stage is Stage.STORED and desk.ledger.load(entry.key) is not None


def _error_of(desk: Desk, entry: Entry, *, refused: bool = False, debug: Any = None) -> ClientError:
    if entry.stage is Stage.FAILED:
        error = entry.error or ErrorInfo(code="unknown_error", message="the job failed")
        details = error.details | ({"debug": debug["debug"]} if isinstance(debug, dict) and "debug" in debug else {})
        kind = TimedOut if error.code == TIMED_OUT.code else JobFailed
        return kind(error.message, worker_code=error.code, retryable=error.retryable, reference=entry.key, **details)
    if entry.stage is Stage.LOST:
        looked = "" if desk.store else " No storage is configured to look for the result in."
        why = "The job completed, but the platform did not keep its result." if refused else _doc(Lost)
        return Lost(why + looked, reference=entry.key)
    desk.ledger.put(msgspec.structs.replace(entry, stage=Stage.AMBIGUOUS))
    return Ambiguous(reference=entry.key)


def _doc(kind: type[ClientError]) -> str:
    return " ".join((kind.__doc__ or "").split())
