"""One job as the platform knows it, and how it is shown to the caller."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from emulator.limits import Limits

Json: TypeAlias = Any
"""Whatever JSON holds; the emulator passes it on unseen."""


class JobStatus(StrEnum):
    """The states the platform documents."""

    IN_QUEUE = "IN_QUEUE"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"

    @property
    def final(self) -> bool:
        """Nothing changes any more, unless the caller retries."""
        return self not in (JobStatus.IN_QUEUE, JobStatus.IN_PROGRESS)


class BadRequest(Exception):
    """The caller's request is refused with 400 and this text."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What the caller may set per request. Seconds; the wire has milliseconds."""

    execution_timeout_s: float
    ttl_s: float
    low_priority: bool = False

    @classmethod
    def parse(cls, wire: Json, limits: Limits) -> "Policy":
        """Read `policy`; raises `BadRequest` outside the documented bounds."""
        if not isinstance(wire, Mapping):
            raise BadRequest("policy must be an object")
        execution = _seconds(wire, "executionTimeout", limits.execution_timeout_s)
        ttl = _seconds(wire, "ttl", limits.ttl_s)
        if execution <= limits.execution_timeout_min_s:
            raise BadRequest(f"policy.executionTimeout must be above {limits.execution_timeout_min_s * 1000:.0f} ms")
        if not limits.ttl_min_s <= ttl <= limits.ttl_max_s:
            raise BadRequest(
                f"policy.ttl must be between {limits.ttl_min_s * 1000:.0f} and {limits.ttl_max_s * 1000:.0f} ms"
            )
        return cls(execution, ttl, bool(wire.get("lowPriority", False)))


def _seconds(wire: Mapping[str, Json], key: str, default: float) -> float:
    value = wire.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadRequest(f"policy.{key} must be a number of milliseconds")
    return value / 1000


@dataclass(slots=True)
class Job:
    """One job. Times are the emulator clock's, in seconds."""

    id: str
    body: Mapping[str, Json]
    """The request as it came: `input` and what else the caller sent."""
    policy: Policy
    sync: bool
    submitted_at: float
    queued_at: float
    status: JobStatus = JobStatus.IN_QUEUE
    taken_at: float | None = None
    finished_at: float | None = None
    kept_for_s: float = math.inf
    """How long after its end the job is still known."""
    forget_at: float = math.inf
    """When the caller asked for it to be forgotten."""
    worker_id: str | None = None
    has_output: bool = False
    output: Json = None
    error: Json = None
    chunks: list[Json] = field(default_factory=list)
    requeues: int = 0
    """How often it went back to the queue because its worker was lost."""
    caller_retries: int = 0
    deliveries: list[str] = field(default_factory=list)
    """The workers it was given to, in order."""
    refused_posts: list[str] = field(default_factory=list)
    """Why results posted for it were refused."""
    progress_posts: list[Json] = field(default_factory=list)

    @property
    def input(self) -> Json:
        """What the handler gets as `input`."""
        return self.body["input"]

    @property
    def webhook(self) -> str | None:
        """Where the caller wants to be told."""
        value = self.body.get("webhook")
        return value if isinstance(value, str) else None

    def expires_at(self) -> float:
        """When the platform forgets it: its time to live, or the end of its result's retention."""
        lifetime_end = min(self.submitted_at + self.policy.ttl_s, self.forget_at)
        if self.finished_at is None:
            return lifetime_end
        return min(lifetime_end, self.finished_at + self.kept_for_s)

    def times_out_at(self) -> float:
        """When its execution is given up; infinite while it is not running."""
        if self.status is not JobStatus.IN_PROGRESS or self.taken_at is None:
            return math.inf
        return self.taken_at + self.policy.execution_timeout_s

    def for_worker(self) -> dict[str, Json]:
        """The job as a worker gets it."""
        return {**{k: v for k, v in self.body.items() if k != "policy"}, "id": self.id}

    def view(self, now: float) -> dict[str, Json]:
        """The job as `/status` shows it. Times in milliseconds."""
        shown: dict[str, Json] = {"id": self.id, "status": self.status.value}
        if self.taken_at is not None:
            shown["delayTime"] = round((self.taken_at - self.queued_at) * 1000)
            shown["executionTime"] = round(((self.finished_at or now) - self.taken_at) * 1000)
        if self.worker_id is not None:
            shown["workerId"] = self.worker_id
        if self.requeues + self.caller_retries:
            shown["retries"] = self.requeues + self.caller_retries
        if self.has_output:
            shown["output"] = self.output
        if self.error is not None:
            shown["error"] = self.error
        return shown
