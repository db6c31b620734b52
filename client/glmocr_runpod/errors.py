"""The one error tree. Each class has a stable `code`, an exit code of the command line, and says what to do next."""

from enum import IntEnum
from typing import Any, ClassVar


class Exit(IntEnum):
    """Exit codes of the command line, one per class of outcome."""

    OK = 0
    FAILED = 1
    USAGE = 2
    DEGRADED = 3
    REFUSED = 4
    UNREACHABLE = 5
    AMBIGUOUS = 6
    LOST = 7
    TOO_LARGE = 8
    CANCELLED = 9
    DENIED = 10
    UNDELIVERED = 11
    INTERRUPTED = 130


class ClientError(Exception):
    """The document could not be read."""

    code: ClassVar[str] = "client_error"
    exit: ClassVar[Exit] = Exit.FAILED

    def __init__(self, message: str | None = None, *, reference: str | None = None, **details: Any) -> None:
        self.message = message or " ".join((type(self).__doc__ or "").split())
        self.reference = reference
        """The ledger's key of the job, for `wait`, `result` and `cancel`."""
        self.details = details
        super().__init__(self.message)

    @property
    def word(self) -> str:
        """The most telling code: of a job that failed the worker's, else `code`."""
        return self.code

    def report(self) -> dict[str, Any]:
        """The error as JSON."""
        return {"code": self.code, "message": self.message, "reference": self.reference, "details": self.details}


class ConfigError(ClientError):
    """A setting is missing or cannot be used."""

    code = "config"
    exit = Exit.USAGE


class StateError(ClientError):
    """The state directory cannot be used."""

    code = "state"
    exit = Exit.USAGE


class OutputError(ClientError):
    """The result cannot be written there; it is kept in the state directory, call again to write it."""

    code = "output"
    exit = Exit.USAGE


class SourceError(ClientError):
    """The document to send cannot be read."""

    code = "source"
    exit = Exit.USAGE


class MissingExtra(ClientError):
    """An optional part of this package is not installed."""

    code = "missing_extra"
    exit = Exit.USAGE


class TooLarge(ClientError):
    """The document is over the platform's limit and no way to carry it is left."""

    code = "too_large"
    exit = Exit.TOO_LARGE


class Denied(ClientError):
    """The platform does not accept the API key."""

    code = "denied"
    exit = Exit.DENIED


class Rejected(ClientError):
    """The platform refused the request."""

    code = "rejected"
    exit = Exit.REFUSED


class Unreachable(ClientError):
    """The platform cannot be reached; nothing is lost, call again to go on."""

    code = "unreachable"
    exit = Exit.UNREACHABLE


class RateLimited(Unreachable):
    """The platform keeps answering 429; nothing was submitted, call again later."""

    code = "rate_limited"


class Ambiguous(ClientError):
    """The request to start the job went out, but no answer came: it may or may not be running and cost money.

    Submitting again needs consent (`resubmit` with `ambiguous`), for it may cost a second job.
    """

    code = "ambiguous"
    exit = Exit.AMBIGUOUS


class Lost(ClientError):
    """The platform does not know the job any more and its result lies nowhere the client can look.

    Submitting again needs consent (`resubmit` with `lost`).
    """

    code = "lost"
    exit = Exit.LOST


class Undelivered(ClientError):
    """The job is done, but its result could not be fetched or does not match its digest; call again to try again."""

    code = "undelivered"
    exit = Exit.UNDELIVERED


class JobFailed(ClientError):
    """The worker could not read the document."""

    code = "job_failed"
    exit = Exit.FAILED

    def __init__(self, message: str | None = None, *, worker_code: str, retryable: bool = False, **rest: Any) -> None:
        super().__init__(message, **rest)
        self.worker_code = worker_code
        """The contract's code: `password_required`, `unsupported_format` and so on."""
        self.retryable = retryable

    @property
    def word(self) -> str:
        """The worker's code."""
        return self.worker_code

    def report(self) -> dict[str, Any]:
        """The error as JSON, with the worker's own code."""
        return super().report() | {"worker_code": self.worker_code, "retryable": self.retryable}


class TimedOut(JobFailed):
    """The job ran longer than its limit."""

    code = "timed_out"


class Cancelled(ClientError):
    """The job was cancelled."""

    code = "cancelled"
    exit = Exit.CANCELLED


class Degraded(ClientError):
    """The document was read, but something in it is missing or doubtful."""

    code = "degraded"
    exit = Exit.DEGRADED


class Closed(ClientError):
    """The client was closed while it waited; call again to go on."""

    code = "closed"
    exit = Exit.INTERRUPTED
