"""What every job works with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from glmocr_runpod.contract import JsonObject
from glmocr_runpod.delivery import ResultStore
from glmocr_runpod.effects import Flow, pause
from glmocr_runpod.errors import Unreachable
from glmocr_runpod.events import Observer, Waiting
from glmocr_runpod.ledger import Ledger
from glmocr_runpod.resume import Consents
from glmocr_runpod.schedule import Policy, retry_delay

T = TypeVar("T")

LEASE_POLL_S = 0.3


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


def patiently(desk: Desk, key: str, attempt: Callable[[], Flow[T]]) -> Flow[T]:
    """What `attempt` returns, repeated on the retry schedule while it raises `Unreachable`."""
    repetition = 0
    while True:
        try:
            return (yield from attempt())
        except Unreachable as error:
            delay = retry_delay(repetition, desk.random())
            if delay is None:
                raise
            desk.observer(Waiting(key, error.message, delay))
        yield from pause(delay)
        repetition += 1


def leased(desk: Desk, key: str, work: Callable[[], Flow[T]]) -> Flow[T]:
    """What `work` returns, done while this call has the job's lease."""
    while True:
        lease = desk.ledger.lease(key)
        if lease is None:
            yield from pause(LEASE_POLL_S)
            continue
        with lease:
            return (yield from work())
