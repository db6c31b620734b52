"""One job: submitted once, watched to its end, its result on disk before anything is forgotten.

Flows only (see `effects`): every decision that can be a pure function is one, in `resume`, `protocol` and `schedule`.
"""

from typing import Any

import msgspec

from glmocr_runpod.artifacts import complete
from glmocr_runpod.contract import DocumentStatus, ErrorInfo, JsonObject
from glmocr_runpod.delivery import read_result, receive
from glmocr_runpod.desk import LEASE_POLL_S, Desk, Job, leased, patiently
from glmocr_runpod.effects import Flow, call, pause, send
from glmocr_runpod.errors import (
    Ambiguous,
    Cancelled,
    ClientError,
    JobFailed,
    Lost,
    Rejected,
    TimedOut,
    Undelivered,
    Unreachable,
)
from glmocr_runpod.events import Finished, Waiting, Watched
from glmocr_runpod.protocol import (
    Again,
    Gone,
    Refusal,
    Snapshot,
    State,
    cancel_request,
    failure_of,
    read_status,
    status_request,
)
from glmocr_runpod.references import ADOPTED
from glmocr_runpod.resume import Entry, Stage, Step, may_requeue, next_step, without_result
from glmocr_runpod.schedule import patient_delay, poll_delay, retry_delay
from glmocr_runpod.submission import requeue, submit

TIMED_OUT = ErrorInfo(code="timed_out", message="the job ran longer than its limit", retryable=True)


def run_job(desk: Desk, job: Job) -> Flow[bytes]:
    """The JSON of the job's result, from the ledger, a live job or a new one. Raises a `ClientError`."""
    entry = yield from secure(desk, job)
    while entry.stage is Stage.SUBMITTED:
        look = yield from watch(desk, entry)
        entry = yield from settle(desk, job, entry, look)
    if entry.stage is not Stage.STORED:
        raise error_of(desk, entry)
    data = yield from call(lambda: desk.ledger.load(job.key))
    if data is None:
        raise Undelivered("the result was removed from the state directory while it was read", reference=job.key)
    return (yield from complete(desk, job.key, data))


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
    if step in (Step.SEARCH, Step.REQUEUE):
        # Also of a job that failed: it may have been queued again by a call that did not live to note it.
        found = yield from _search(desk, entry)
        if found is not None:
            return found
    if step is Step.SEARCH:
        step = without_result(entry.stage, desk.consents)
        if step is Step.SUBMIT:
            return (yield from submit(desk, job, entry))
    if step is Step.REPORT:
        raise error_of(desk, entry)
    if step is Step.REQUEUE:
        return (yield from requeue(desk, job, msgspec.structs.replace(entry, runs=0)))
    # A result that was removed from the disk may still be with the platform.
    return _write(desk, entry, Stage.SUBMITTED) if step is Step.POLL else entry


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
    """What a final state means: a stored result, a job queued again, or the end of it, written to the ledger.

    Another process may have gone further with the same job; then its entry is returned as it is.
    """

    def settled() -> Flow[Entry]:
        now = desk.ledger.get(entry.key) or entry
        if now.total_runs != entry.total_runs or now.stage is not Stage.SUBMITTED:
            return now
        return (yield from _settle(desk, job, entry, look))

    return (yield from leased(desk, entry.key, settled))


def _settle(desk: Desk, job: Job, entry: Entry, look: Snapshot | Gone) -> Flow[Entry]:
    if isinstance(look, Gone) or (look.state == State.COMPLETED and look.output is None):
        return (yield from _lost(desk, entry, completed=isinstance(look, Snapshot)))
    spent = msgspec.structs.replace(entry, execution_ms=entry.execution_ms + (look.execution_ms or 0))
    if look.state == State.COMPLETED:
        return (yield from _store(desk, spent, look.output))
    if look.state == State.CANCELLED:
        return _write(desk, spent, Stage.CANCELLED)
    error = TIMED_OUT if look.state == State.TIMED_OUT else failure_of(look.error)
    if may_requeue(entry, error, desk.consents):
        return (yield from requeue(desk, job, spent))
    error = msgspec.structs.replace(error, details=error.details | _beside(look.output))
    return _write(desk, msgspec.structs.replace(spent, error=error), Stage.FAILED)


def _beside(output: Any) -> JsonObject:
    """What came with a failure: what the worker knows, and the ledger of pages none of which could be read."""
    if not isinstance(output, dict):
        return {}
    debug = {"debug": output["debug"]} if "debug" in output else {}
    ledger = {name: value for name, value in output.items() if name != "debug"} if "pages" in output else None
    return debug | ({"output": ledger} if ledger else {})


def cancel(desk: Desk, entry: Entry) -> Flow[Entry]:
    """Stop a submitted job. A job that has ended meanwhile keeps its state, and its result can be fetched."""
    attempt = 0
    while True:
        look = read_status((yield from send(cancel_request(entry.job_id or ""))))
        match look:
            case Snapshot():
                return _write(desk, entry, Stage.CANCELLED) if look.state == State.CANCELLED else entry
            case Gone():
                raise Rejected("the platform does not know the job", reference=entry.key)
            case Refusal(error):
                raise error
            case Again(message, retry_after):
                delay = retry_delay(attempt, desk.random(), retry_after)
                if delay is None:
                    raise Unreachable(message, reference=entry.key)
                yield from pause(delay)
                attempt += 1


def _store(desk: Desk, entry: Entry, output: Any) -> Flow[Entry]:
    try:
        data = yield from patiently(desk, entry.key, lambda: receive(output, desk.store))
    except Undelivered as error:
        error.reference = entry.key
        yield from call(lambda: desk.ledger.save(undelivered_name(entry.key), msgspec.json.encode(output)))
        raise
    except ClientError as error:
        error.reference = entry.key
        raise
    return (yield from _keep(desk, entry, data))


def undelivered_name(key: str) -> str:
    """Under which the ledger keeps what a job returned when that is no result, or points to one out of reach."""
    return f"{key}.undelivered"


def _keep(desk: Desk, entry: Entry, data: bytes) -> Flow[Entry]:
    yield from call(lambda: desk.ledger.save(entry.key, data))
    stored = _write(desk, entry, Stage.STORED)
    desk.observer(Finished(entry.key, stored.execution_ms))
    return stored


def _lost(desk: Desk, entry: Entry, *, completed: bool) -> Flow[Entry]:
    found = yield from _search(desk, entry)
    if found is not None:
        return found
    why = "The job completed, but the platform did not keep its result." if completed else _doc(Lost)
    if entry.content_key.startswith(ADOPTED):
        why = f"{entry.name} is neither a reference of this state directory nor a job the platform (still) knows."
    return _write(desk, msgspec.structs.replace(entry, error=ErrorInfo(code=Lost.code, message=why)), Stage.LOST)


def _search(desk: Desk, entry: Entry) -> Flow[Entry | None]:
    store = desk.store
    if store is None:
        return None
    data = yield from patiently(desk, entry.key, lambda: call(lambda: store.find(entry.content_key)))
    if data is None:
        return None
    if not _is_result_of(data, entry.content_key):
        return None
    return (yield from _keep(desk, entry, data))


def _is_result_of(data: bytes, content_key: str) -> bool:
    """A failed one is not taken: it may be of an earlier job than the one that is looked for."""
    try:
        result = read_result(data)
    except Undelivered:
        return False
    document = result.document
    return document is not None and document.content_key == content_key and result.status is not DocumentStatus.FAILED


def _write(desk: Desk, entry: Entry, stage: Stage) -> Entry:
    entry = msgspec.structs.replace(entry, stage=stage)
    desk.ledger.put(entry)
    return entry


def _on_disk(desk: Desk, entry: Entry | None) -> bool:
    return entry is not None and entry.stage is Stage.STORED and desk.ledger.load(entry.key) is not None


def error_of(desk: Desk, entry: Entry) -> ClientError:
    """What an entry without a result means to the caller."""
    if entry.stage is Stage.CANCELLED:
        return Cancelled(reference=entry.key)
    if entry.stage is Stage.FAILED:
        error = entry.error or ErrorInfo(code="unknown_error", message="the job failed")
        kind = TimedOut if error.code == TIMED_OUT.code else JobFailed
        failed = kind(error.message, worker_code=error.code, retryable=error.retryable, reference=entry.key)
        failed.details = dict(error.details)
        return failed
    if entry.stage is Stage.LOST:
        looked = "" if desk.store else " No storage is configured to look for it in."
        return Lost((entry.error.message if entry.error else _doc(Lost)) + looked, reference=entry.key)
    _write(desk, entry, Stage.AMBIGUOUS)
    return Ambiguous(reference=entry.key)


def _doc(kind: type[ClientError]) -> str:
    return " ".join((kind.__doc__ or "").split())
