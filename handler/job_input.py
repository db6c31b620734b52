"""From what the platform hands over to a `JobInput`, with a clear word on what is wrong."""

import difflib
import reprlib
from typing import Any

from pydantic import ValidationError

from handler.errors import InputError, UnknownKey
from handler.schema import SOURCE_KEYS, JobInput
from handler.sources.staging import check_source

KNOWN_KEYS = tuple(JobInput.model_fields)
SHOWN_VALUE = 80


def parse_input(value: object) -> JobInput:
    """The job's input. Raises an `InputError` that names the key, what it holds and what it accepts."""
    if not isinstance(value, dict):
        raise InputError(f"input must be an object, not {type(value).__name__}")
    _refuse_unknown(value)
    try:
        job = JobInput.model_validate(value)
    except ValidationError as error:
        # JSON numbers that stand for text and the like are told, never guessed.
        raise InputError("; ".join(_complaint(e["loc"], e["msg"], e["input"]) for e in error.errors())) from None
    except RecursionError:
        raise InputError("input is nested too deeply") from None
    _one_source(job)
    return job


def _refuse_unknown(value: dict[Any, Any]) -> None:
    for key in value:
        if key in KNOWN_KEYS:
            continue
        shown = str(key)[:SHOWN_VALUE]
        near = difflib.get_close_matches(shown, KNOWN_KEYS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]}?" if near else f"; known keys: {', '.join(KNOWN_KEYS)}"
        raise UnknownKey(f"input has no key {shown!r}{hint}", key=shown, nearest=near[0] if near else None)


def _one_source(job: JobInput) -> None:
    given = [key for key in SOURCE_KEYS if getattr(job, key) is not None]
    if job.warmup or job.probe:
        if given:
            raise InputError(f"warmup and probe take no document, but {given[0]} is given")
        return
    check_source(job)


def _complaint(loc: tuple[int | str, ...], message: str, value: object) -> str:
    name = ".".join(map(str, loc)) or "input"
    if loc and loc[0] in (*SOURCE_KEYS, "password"):
        return f"{name}: {message}"
    # Bounded in depth as well: a plain repr of 5000 nested lists ends in a RecursionError.
    return f"{name}: {message} (got {reprlib.repr(value)[:SHOWN_VALUE]})"
