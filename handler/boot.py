"""What the boot did, step by step: for the log, and for every job's `debug`."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from handler import __version__
from handler.schema import JsonValue
from handler.settings import Settings

log = logging.getLogger(__name__)


class BootReport:
    """Seconds per step, and the facts the steps found."""

    def __init__(self, settings: Settings) -> None:
        self._started = time.monotonic()
        self._settings = settings
        self._seconds: dict[str, float] = {}
        self._facts: dict[str, JsonValue] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step. Steps may overlap."""
        begun = time.monotonic()
        try:
            yield
        finally:
            self._seconds[name] = round(time.monotonic() - begun, 3)

    def found(self, facts: Mapping[str, JsonValue]) -> None:
        """Add facts by name: gates, patches, GPU, models."""
        self._facts.update(facts)

    def log(self) -> None:
        """One table: a step and its seconds a line."""
        total = time.monotonic() - self._started
        rows = [f"{name:<16} {seconds:8.2f} s" for name, seconds in (*self._seconds.items(), ("ready after", total))]
        for row in rows:
            log.info("boot: %s", row)

    def as_json(self) -> dict[str, JsonValue]:
        """For `debug.boot`."""
        return {
            "worker": __version__,
            "seconds": dict(self._seconds),
            "settings": dict(self._settings.public()),
            **self._facts,
        }
