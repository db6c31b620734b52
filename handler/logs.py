"""Log lines: one JSON object each, on stdout, with the job they belong to."""

import json
import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

from handler.redaction import Redactor

_job_id: ContextVar[str | None] = ContextVar("job_id", default=None)


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@contextmanager
def job_context(job_id: str) -> Iterator[None]:
    """Everything logged inside belongs to this job."""
    token = _job_id.set(job_id)
    try:
        yield
    finally:
        _job_id.reset(token)


def current_job() -> str | None:
    """The job the running code works for; None at boot."""
    return _job_id.get()


class JsonFormatter(logging.Formatter):
    """Time, level, logger, job, message, and whatever `extra={"fields": {...}}` adds; secrets taken out."""

    def __init__(self, redact: Redactor | None = None) -> None:
        super().__init__()
        self._redact = redact or Redactor()

    def format(self, record: logging.LogRecord) -> str:
        """One line of JSON, in ASCII: nothing that is logged can be refused by what carries the line."""
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "job": _job_id.get(),
            "message": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return self._redact(json.dumps(line, default=str))


class _Into(logging.Handler):
    """Hands the lines of somebody else's logger to one of ours, as far as ours takes them."""

    def __init__(self, target: logging.Logger) -> None:
        super().__init__()
        self._target = target

    def emit(self, record: logging.LogRecord) -> None:
        if self._target.isEnabledFor(record.levelno):
            self._target.handle(record)


def take_over(package: ModuleType, into: logging.Logger) -> None:
    """Send to `into` what the modules of a package log through handlers of their own.

    For a package whose modules add theirs only to a logger that has none, some of them late (rapid-layout 1.2.1).
    """
    folder = Path(package.__path__[0])
    for path in folder.rglob("*.py"):
        name = ".".join(path.relative_to(folder.parent).with_suffix("").parts)
        logging.getLogger(name).handlers = [_Into(into)]


def configure(level: LogLevel, *more: logging.Handler, secrets: Iterable[str] = ()) -> None:
    """Send this package's log lines to stdout, and to `more`, without `secrets`.

    Own handlers: the SDK resets the root logger.
    """
    logger = logging.getLogger("handler")
    logger.setLevel(level.upper())
    logger.propagate = False
    logger.handlers = [logging.StreamHandler(sys.stdout), *more]
    formatter = JsonFormatter(Redactor(secrets))
    for handler in logger.handlers:
        handler.setFormatter(formatter)
