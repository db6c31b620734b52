"""How the driver speaks with the process it measures: one JSON line in, one JSON line out."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.threads import WATCHER


@dataclass(frozen=True, slots=True)
class Task:
    """Documents to read. `at_once`: how many at the same time."""

    documents: tuple[str, ...]
    at_once: int = 1

    @property
    def paths(self) -> list[Path]:
        """The documents as paths."""
        return [Path(name) for name in self.documents]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a task. `started` and `ended` are seconds of the machine's monotonic clock."""

    started: float
    ended: float
    pages: int
    regions: int
    """Regions with text."""
    characters: int
    """Characters of text in all regions of the result."""
    lost: int = 0
    """Regions that were asked for and have no whole text, and pages that failed."""
    notes: dict[str, object] | None = None

    @property
    def watching_s(self) -> float:
        """CPU seconds of the thread that reads the other threads' clocks: the benchmark's own, on both sides."""
        threads: Any = (self.notes or {}).get("thread_cpu_s", {})
        return float(threads.get(WATCHER, 0.0))

    @property
    def wall_s(self) -> float:
        """Seconds from the first call to the last result."""
        return self.ended - self.started


class Channel:
    """The measured process's end. Whatever else it prints goes to standard error from now on."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def ready(self) -> None:
        """Ready for tasks."""
        self._say({"ready": True})

    def tasks(self) -> Iterator[Task]:
        """What the driver asks for, until it closes the pipe."""
        for line in sys.stdin:
            asked = json.loads(line)
            yield Task(tuple(asked["documents"]), asked["at_once"])

    def report(self, done: Done) -> None:
        """Answer one task."""
        self._say(asdict(done))

    def _say(self, value: object) -> None:
        print(json.dumps(value), file=self._out, flush=True)
