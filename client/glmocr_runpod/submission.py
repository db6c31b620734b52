"""Sending a job, once; and again where it is known not to run. The caller holds the job's lease. Flows only."""

import msgspec

from glmocr_runpod.desk import Desk, Job, patiently
from glmocr_runpod.effects import Flow, call, pause, send
from glmocr_runpod.errors import Ambiguous, Closed, RateLimited, Unreachable
from glmocr_runpod.events import Submitted, Waiting
from glmocr_runpod.protocol import (
    Accepted,
    Again,
    Gone,
    NotTaken,
    Refusal,
    Snapshot,
    State,
    Unclear,
    read_status,
    read_submission,
    retry_request,
    run_body,
    run_request,
    status_request,
)
from glmocr_runpod.resume import Entry, Stage
from glmocr_runpod.schedule import patient_delay, retry_delay

RETRY_POSTS = 3


def submit(desk: Desk, job: Job, known: Entry | None, *, runs: int = 0) -> Flow[Entry]:
    """Send the job, once. Raises `Ambiguous` when it may or may not have been taken."""
    entry = _intent(job, known, runs)
    # The body first: what cannot be made, because its bytes are not at hand, changes nothing.
    body = yield from patiently(desk, job.key, lambda: call(lambda: _body(job, entry)))
    desk.ledger.put(entry)
    attempt = 0
    while True:
        desk.ledger.put(msgspec.structs.replace(entry, stage=Stage.SENDING))
        try:
            submission = read_submission((yield from send(run_request(body))))
        except Closed:
            desk.ledger.put(entry)
            raise
        match submission:
            case Accepted(job_id):
                return _submitted(desk, entry, job_id)
            case Unclear(message):
                desk.ledger.put(_one_run_more(entry, Stage.AMBIGUOUS))
                raise Ambiguous(f"{' '.join((Ambiguous.__doc__ or '').split())} ({message})", reference=job.key)
            case Refusal(error):
                desk.ledger.put(entry)
                error.reference = job.key
                raise error
            case NotTaken(message, limited, retry_after):
                desk.ledger.put(entry)
                delay = retry_delay(attempt, desk.random(), retry_after)
                if delay is None:
                    raise (RateLimited if limited else Unreachable)(message, reference=job.key)
                desk.observer(Waiting(job.key, message, delay))
                yield from pause(delay)
                attempt += 1


def _intent(job: Job, known: Entry | None, runs: int) -> Entry:
    before = known.total_runs if known else 0
    return Entry(
        key=job.key,
        content_key=job.content_key,
        name=job.name,
        stage=Stage.INTENDED,
        idempotency_key=f"{job.key[:32]}-{before + 1}",
        runs=runs,
        total_runs=before,
        ttl_s=job.policy.ttl_s,
        execution_ms=known.execution_ms if known else 0,
    )


def _body(job: Job, entry: Entry) -> bytes:
    return run_body(job.body() | {"idempotency_key": entry.idempotency_key}, job.policy.wire())


def _submitted(desk: Desk, entry: Entry, job_id: str) -> Entry:
    entry = msgspec.structs.replace(_one_run_more(entry, Stage.SUBMITTED), job_id=job_id, submitted_at=desk.time.wall())
    desk.ledger.put(entry)
    desk.observer(Submitted(entry.key, job_id))
    return entry


def requeue(desk: Desk, job: Job, entry: Entry) -> Flow[Entry]:
    """Run a failed job again: under its id where the platform allows, else as a new one.

    A new one only when the old one is known not to run: `/retry` was refused and its state is final or gone.
    """
    again = msgspec.structs.replace(_one_run_more(entry, Stage.SUBMITTED), error=None, submitted_at=desk.time.wall())
    for attempt in range(RETRY_POSTS):
        look = read_status((yield from send(retry_request(entry.job_id or ""))))
        # A repetition that is refused may mean that the first one was taken: the job's state tells.
        now = look if isinstance(look, Snapshot) else read_status((yield from send(status_request(entry.job_id or ""))))
        if isinstance(now, Refusal):
            raise now.error
        if isinstance(now, Snapshot) and (now is look or now.state not in (State.FAILED, State.TIMED_OUT)):
            desk.ledger.put(again)
            desk.observer(Submitted(entry.key, entry.job_id or ""))
            return again
        if isinstance(now, Snapshot | Gone) and isinstance(look, Refusal | Gone):
            return (yield from submit(desk, job, entry, runs=entry.runs))
        yield from pause(patient_delay(attempt, desk.random(), look.retry_after_s if isinstance(look, Again) else None))
    raise Unreachable("the failed job could not be queued again just now", reference=job.key)


def _one_run_more(entry: Entry, stage: Stage) -> Entry:
    return msgspec.structs.replace(entry, stage=stage, runs=entry.runs + 1, total_runs=entry.total_runs + 1)
