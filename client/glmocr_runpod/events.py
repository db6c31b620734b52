"""What a caller may watch while a document is read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from glmocr_runpod.contract import Progress


@dataclass(frozen=True, slots=True)
class Submitted:
    """The platform took a job."""

    key: str
    job_id: str


@dataclass(frozen=True, slots=True)
class Watched:
    """A status call was answered."""

    key: str
    state: str
    elapsed_s: float
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something transient went wrong; asked again after `seconds`."""

    key: str
    message: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Finished:
    """A job's result is on disk."""

    key: str
    execution_ms: int = 0


@dataclass(frozen=True, slots=True)
class Noted:
    """A step of preparing a document: packed, divided, uploaded, shrunk, or why not."""

    step: str
    detail: str = ""
    loud: bool = False
    facts: dict[str, int | float | str] = field(default_factory=dict)


Event: TypeAlias = Submitted | Watched | Waiting | Finished | Noted
Observer: TypeAlias = Callable[[Event], None]
