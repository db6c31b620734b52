"""What a flow may ask of the outside world.

A flow is a generator: it yields an effect and is sent the answer. The flows hold all decisions and do no I/O; the two
shells (`sync`, `aio`) perform the effects, so neither is a copy of the other.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
SILENCE_S = 60.0


class Method(StrEnum):
    """HTTP methods in use."""

    GET = "GET"
    POST = "POST"


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `path` is relative to the endpoint, or a whole address for a presigned result."""

    method: Method
    path: str
    body: bytes | None = field(default=None, repr=False)
    deadline_s: float = 60.0
    """Seconds from connecting to the last byte of the answer."""
    fresh: bool = False
    """On a connection of its own: a kept-alive one that died would leave us guessing whether the bytes went out."""
    authorised: bool = True
    largest_answer: int = 64 * 1024 * 1024
    """Bytes. The platform delivers 20 MB at most; a larger answer is not one of its."""

    @property
    def silence_s(self) -> float:
        """Seconds without a byte after which nothing more is expected. A submission is answered when it is answered."""
        return min(SILENCE_S, self.deadline_s) if self.method is Method.GET else self.deadline_s


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer. Header names are in lower case."""

    status: int
    body: bytes = field(default=b"", repr=False)
    headers: dict[str, str] = field(default_factory=dict)


class Break(StrEnum):
    """How a request failed to bring an answer."""

    NOT_SENT = "not_sent"
    """No byte of the request left: no address, no connection, no TLS."""
    BROKEN = "broken"
    """The connection broke after that."""
    TIMEOUT = "timeout"
    """No complete answer within the deadline."""


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A request that brought no complete answer."""

    how: Break
    message: str


Outcome: TypeAlias = Response | NoAnswer


@dataclass(frozen=True, slots=True)
class Send:
    """Perform a request; answered with an `Outcome`."""

    request: Request


@dataclass(frozen=True, slots=True)
class Pause:
    """Let time pass, seconds; ends early when the client is closed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """Run something that blocks (disk, a child process, an upload); answered with what it returns."""

    work: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Together:
    """Run flows side by side; answered with a list of what each returned or the `ClientError` it raised."""

    flows: Sequence["Flow[Any]"]
    at_once: int


Effect: TypeAlias = Send | Pause | Call | Together
Flow: TypeAlias = Generator[Effect, Any, T]


def send(request: Request) -> Flow[Outcome]:
    """`Send`, typed."""
    outcome: Outcome = yield Send(request)
    return outcome


def pause(seconds: float) -> Flow[None]:
    """`Pause`, typed."""
    yield Pause(seconds)


def call(work: Callable[[], T]) -> Flow[T]:
    """`Call`, typed."""
    answer: T = yield Call(work)
    return answer
