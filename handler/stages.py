"""Where a job's time goes: seconds and count per stage, for `debug`."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from handler.schema import JsonValue


class Stage(StrEnum):
    """The stages of a document, in the order a page passes them."""

    FETCH = "fetch"
    OPEN = "open"
    RENDER = "render"
    LAYOUT = "layout"
    CUT = "cut"
    RECOGNISE = "recognise"
    ASSEMBLE = "assemble"
    DELIVER = "deliver"


class Stages:
    """Adds up what overlapping pages spend, so the sum may exceed the wall time."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._seconds: dict[Stage, float] = {}
        self._count: dict[Stage, int] = {}

    @contextmanager
    def measure(self, stage: Stage) -> Iterator[None]:
        """Count the block's wall time, waiting included."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self._seconds[stage] = self._seconds.get(stage, 0.0) + time.monotonic() - begun
            self._count[stage] = self._count.get(stage, 0) + 1

    @property
    def wall(self) -> float:
        """Seconds since the job began."""
        return time.monotonic() - self._started

    def report(self) -> dict[str, JsonValue]:
        """`{stage: {seconds, count}, total_s}`."""
        stages: dict[str, JsonValue] = {
            stage.value: {"seconds": round(self._seconds[stage], 3), "count": self._count[stage]}
            for stage in Stage
            if stage in self._seconds
        }
        return {**stages, "total_s": round(self.wall, 3)}
