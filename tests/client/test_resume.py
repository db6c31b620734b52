"""What a call does with what the ledger has: the table of docs/client.md."""

import pytest
from glmocr_runpod.contract import ErrorInfo
from glmocr_runpod.resume import (
    DEFAULT_CONSENTS,
    PAID_RUNS,
    Consent,
    Entry,
    Stage,
    Step,
    may_requeue,
    next_step,
    without_result,
)

PASSING = ErrorInfo(code="engine_unavailable", message="m", retryable=True)
LASTING = ErrorInfo(code="document_unreadable", message="m")
ANSWERED = ErrorInfo(code="password_required", message="m")


def entry(stage: Stage, error: ErrorInfo | None = None, *, job_id: str | None = "j", runs: int = 1) -> Entry:
    return Entry(
        key="k", content_key="c", name="n", stage=stage, idempotency_key="i", job_id=job_id, error=error, runs=runs
    )


@pytest.mark.parametrize(
    ("stage", "step"),
    [
        (Stage.INTENDED, Step.SUBMIT),
        (Stage.SENDING, Step.SEARCH),
        (Stage.AMBIGUOUS, Step.SEARCH),
        (Stage.LOST, Step.SEARCH),
        (Stage.SUBMITTED, Step.POLL),
        (Stage.STORED, Step.RETURN),
        (Stage.CANCELLED, Step.SUBMIT),
    ],
)
def test_by_stage(stage: Stage, step: Step) -> None:
    assert next_step(entry(stage), DEFAULT_CONSENTS, result_on_disk=True) is step


def test_an_unknown_job_is_submitted_and_a_removed_result_looked_for() -> None:
    assert next_step(None, DEFAULT_CONSENTS, result_on_disk=False) is Step.SUBMIT
    assert next_step(entry(Stage.STORED), DEFAULT_CONSENTS, result_on_disk=False) is Step.POLL


@pytest.mark.parametrize(
    ("error", "job_id", "consents", "step"),
    [
        (PASSING, "j", DEFAULT_CONSENTS, Step.REQUEUE),
        (PASSING, None, DEFAULT_CONSENTS, Step.SUBMIT),
        (PASSING, "j", frozenset(), Step.REPORT),
        (LASTING, "j", DEFAULT_CONSENTS, Step.REPORT),
        (LASTING, "j", frozenset({Consent.REFUSED}), Step.SUBMIT),
        (ANSWERED, "j", DEFAULT_CONSENTS, Step.SUBMIT),
        (None, "j", DEFAULT_CONSENTS, Step.SUBMIT),
    ],
)
def test_after_a_failure(error: ErrorInfo | None, job_id: str | None, consents: frozenset[Consent], step: Step) -> None:
    assert next_step(entry(Stage.FAILED, error, job_id=job_id), consents, result_on_disk=False) is step


@pytest.mark.parametrize("stage", [Stage.SENDING, Stage.AMBIGUOUS])
def test_an_ambiguous_job_needs_its_own_consent(stage: Stage) -> None:
    everything_else = frozenset(Consent) - {Consent.AMBIGUOUS}
    assert without_result(stage, everything_else) is Step.REPORT
    assert without_result(stage, frozenset({Consent.AMBIGUOUS})) is Step.SUBMIT


def test_a_lost_job_needs_its_own_consent() -> None:
    assert without_result(Stage.LOST, frozenset(Consent) - {Consent.LOST}) is Step.REPORT
    assert without_result(Stage.LOST, frozenset({Consent.LOST})) is Step.SUBMIT


def test_repetitions_within_a_call_are_bounded() -> None:
    assert may_requeue(entry(Stage.SUBMITTED, runs=PAID_RUNS - 1), PASSING, DEFAULT_CONSENTS)
    assert not may_requeue(entry(Stage.SUBMITTED, runs=PAID_RUNS), PASSING, DEFAULT_CONSENTS)
    assert not may_requeue(entry(Stage.SUBMITTED), LASTING, DEFAULT_CONSENTS)
    assert not may_requeue(entry(Stage.SUBMITTED), PASSING, frozenset())
