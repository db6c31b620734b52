"""The journal of one attempt at a document: what it was reading, what the engine answered, how it ended.

One line of JSON a record, appended and never rewritten: a worker that dies at any instant leaves all but the line it
was writing, and what is not whole is passed over. An attempt without an ending whose worker is gone has died.
"""

import hashlib
import json
import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter

from handler.company import Care
from handler.engine.api import EngineRequest
from handler.recognition.reading import Answer
from handler.schema import JsonValue

STALE_S = 120.0
"""An attempt of another job counts as dead when it has written nothing for so long."""

Record: TypeAlias = Mapping[str, JsonValue]
Answers: TypeAlias = defaultdict[str, deque[Answer]]
"""By the key of the request, in the order they were given."""

_ANSWER = TypeAdapter(Answer)


class Ending(StrEnum):
    """How an attempt ended."""

    DONE = "done"
    LEFT = "left"
    """Cancelled, or its worker was told to stop: whatever happens afterwards is no page's fault."""
    ENGINE_LOST = "engine_lost"
    """The engine died or hung, as good as the worker's death."""


@dataclass(frozen=True)
class Attempt:
    """What a journal says."""

    path: Path
    owner: str
    touched: float
    """Seconds since the epoch."""
    reading: Mapping[int, Care] = field(default_factory=dict)
    """Pages begun and not ended."""
    ending: Ending | None = None

    def died(self, job_id: str, now: float) -> bool:
        """Whether it did, as far as job `job_id` can tell: the platform runs a job once at a time."""
        if self.ending is not None:
            return self.ending is Ending.ENGINE_LOST
        return self.owner == _owner(job_id) or now - self.touched > STALE_S


class Journal:
    """Appends to the file of one attempt. Both methods may raise `OSError`."""

    def __init__(self, folder: Path, job_id: str) -> None:
        self.path = folder / f"{_owner(job_id)}-{uuid.uuid4().hex}.jsonl"
        self._torn = False

    def append(self, records: Iterable[Record]) -> None:
        """All of them at once. What could not be written whole is closed off by the next line."""
        lines = "".join(json.dumps(record) + "\n" for record in records)
        data = (("\n" if self._torn else "") + lines).encode()
        self._torn = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab", buffering=0) as file:
            written = file.write(data)
        self._torn = written < len(data)

    def remove(self) -> None:
        """As if the attempt had never been."""
        self.path.unlink(missing_ok=True)


def started(page: int, care: Care) -> Record:
    """The page is being read."""
    return {"begin": page, "care": care.value}


def finished(page: int) -> Record:
    """It no longer is."""
    return {"end": page}


def answered(request: EngineRequest, answer: Answer) -> Record:
    """The engine answered."""
    return {"answer": key_of(request), "said": _ANSWER.dump_python(answer, mode="json")}


def ended(how: Ending) -> Record:
    """The attempt has ended; of several endings the first one counts."""
    return {"ended": how.value}


def key_of(request: EngineRequest) -> str:
    """Equal for requests that an engine cannot tell apart."""
    asked = f"{request.prompt}\n{request.max_tokens}\n{request.repetition_penalty}\n".encode()
    return hashlib.sha256(asked + request.jpeg).hexdigest()


def read_attempts(folder: Path) -> tuple[list[Attempt], Answers]:
    """All attempts of a document, oldest first, and everything that the engine answered in them."""
    found = []
    for path in folder.glob("*.jsonl"):
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime, path, path.read_bytes()))
    answers: Answers = defaultdict(deque)
    return [_read(path, touched, data, answers) for touched, path, data in sorted(found)], answers


def _read(path: Path, touched: float, data: bytes, answers: Answers) -> Attempt:
    reading: dict[int, Care] = {}
    ending: Ending | None = None
    for line in data.splitlines():
        with suppress(ValueError):  # of JSON, of enumerations and of pydantic
            match json.loads(line):
                case {"begin": int(page), "care": care}:
                    reading[page] = Care(care)
                case {"end": int(page)}:
                    reading.pop(page, None)
                case {"answer": str(key), "said": said}:
                    answers[key].append(_ANSWER.validate_python(said))
                case {"ended": how}:
                    ending = ending or Ending(how)
    return Attempt(path, path.name.partition("-")[0], touched, reading, ending)


def _owner(job_id: str) -> str:
    return hashlib.sha256(job_id.encode()).hexdigest()[:16]
