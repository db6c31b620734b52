"""What to do with a job the ledger knows, or does not. Pure decisions, made while the job's lease is held."""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from glmocr_runpod.contract import ErrorInfo

PAID_RUNS = 3
"""Most runs of one job in one call: the first and two repetitions of a failure that may pass."""


class Stage(StrEnum):
    """How far a job is, as the ledger has it."""

    INTENDED = "intended"
    """Written before anything is sent."""
    SENDING = "sending"
    """The request is about to go out or has gone out; no answer is known."""
    SUBMITTED = "submitted"
    """The platform gave it an id."""
    STORED = "stored"
    """Its result is on disk."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    AMBIGUOUS = "ambiguous"
    LOST = "lost"


class Consent(StrEnum):
    """What may be submitted again although that may cost a second run."""

    FAILED = "failed"
    """Failures that may pass, at most `PAID_RUNS` runs. The only default."""
    REFUSED = "refused"
    """Any failure, also those that will repeat themselves."""
    AMBIGUOUS = "ambiguous"
    LOST = "lost"
    STORED = "stored"
    """Documents that have a result: each call reads them anew, for a better worker or a part that was missing."""


Consents: TypeAlias = frozenset[Consent]
DEFAULT_CONSENTS: Consents = frozenset({Consent.FAILED})

CALL_AGAIN = frozenset(
    {
        "unknown_error",
        "internal_error",
        "password_required",
        "password_wrong",
        "result_too_large",
        "source_not_found",
        "url_refused",
        "no_page_readable",
    }
)
"""Failures whose cause may be gone, or answered by an option outside the content key, when the caller calls again."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One job in the ledger."""

    key: str
    content_key: str
    name: str
    """The document's name, for people."""
    stage: Stage
    idempotency_key: str
    """Ours; echoed in the output."""
    job_id: str | None = None
    runs: int = 0
    """Paid runs of the present call."""
    total_runs: int = 0
    submitted_at: float | None = None
    """Seconds since 1970 when the platform took it."""
    ttl_s: float = 0.0
    execution_ms: int = 0
    """How long the platform says its runs took so far. A worker reads several jobs at once and is paid once."""
    error: ErrorInfo | None = None


class Step(StrEnum):
    """What comes next."""

    SUBMIT = "submit"
    POLL = "poll"
    RETURN = "return"
    REQUEUE = "requeue"
    SEARCH = "search"
    """Look for the result in storage, then do as `without_result` says."""
    REPORT = "report"


def next_step(entry: Entry | None, consents: Consents, *, result_on_disk: bool) -> Step:
    """What a call does with what it finds. The caller holds the lease: `sending` means its sender is dead."""
    if entry is None:
        return Step.SUBMIT
    match entry.stage:
        case Stage.INTENDED | Stage.CANCELLED:
            return Step.SUBMIT
        case Stage.SUBMITTED:
            return Step.POLL
        case Stage.STORED if Consent.STORED in consents:
            return Step.SUBMIT
        case Stage.STORED:
            return Step.RETURN if result_on_disk else Step.POLL
        case Stage.FAILED:
            return _after_failure(entry, consents)
        case Stage.SENDING | Stage.AMBIGUOUS | Stage.LOST:
            return Step.SEARCH


def without_result(stage: Stage, consents: Consents) -> Step:
    """After `SEARCH` found nothing."""
    wanted = Consent.LOST if stage is Stage.LOST else Consent.AMBIGUOUS
    return Step.SUBMIT if wanted in consents else Step.REPORT


def _after_failure(entry: Entry, consents: Consents) -> Step:
    error = entry.error
    if error is None or error.code in CALL_AGAIN or Consent.REFUSED in consents:
        return Step.SUBMIT
    if error.retryable and Consent.FAILED in consents:
        return Step.REQUEUE if entry.job_id else Step.SUBMIT
    return Step.REPORT


def may_requeue(entry: Entry, error: ErrorInfo, consents: Consents) -> bool:
    """Whether a job that just failed is run again within this call."""
    return error.retryable and Consent.FAILED in consents and entry.runs < PAID_RUNS
