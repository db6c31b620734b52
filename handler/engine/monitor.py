"""Watches the engine while jobs run: its load, its exit code, and whether it still answers when nobody asks it.

A busy engine is never probed: a request that misses its deadline says more (`HttpEngine`). An idle one is, rarely, and
never twice at a time: SGLang does not abort a probe whose caller went away.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from handler.engine.api import EngineLoad
from handler.engine.client import HttpEngine
from handler.schema import JsonValue

log = logging.getLogger(__name__)

HISTORY = 900
"""Samples kept: a quarter of an hour at one a second."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds."""

    sample: float = 1.0
    idle_probe: float = 60.0
    """Between two probes of an engine that has nothing to do."""


@dataclass(frozen=True, slots=True)
class _Sample:
    at: float
    load: EngineLoad


class EngineMonitor:
    """`observe` gets every sample, None while the engine does not tell; `on_gone` is called once, when it is lost."""

    def __init__(
        self,
        engine: HttpEngine,
        *,
        observe: Callable[[EngineLoad | None], None],
        on_gone: Callable[[], None],
        pace: Pace | None = None,
    ) -> None:
        self._engine = engine
        self._observe = observe
        self._on_gone = on_gone
        self._pace = pace or Pace()
        self._samples: deque[_Sample] = deque(maxlen=HISTORY)
        self._load: EngineLoad | None = None
        self._probed = time.monotonic()

    @property
    def load(self) -> EngineLoad | None:
        """The last sample."""
        return self._load

    async def run(self) -> None:
        """Sample until the engine is gone. Cancel to end it earlier."""
        while self._engine.alive():
            await self._sample()
            if self._idle() and not await self._engine.responds() and not self._engine.in_flight:
                self._engine.declare_hung()
                log.error("the idle engine does not answer its health probe")
            await asyncio.sleep(self._pace.sample)
        self._load = None
        log.error("the engine is gone; this worker is no longer fit to take jobs")
        self._on_gone()

    def occupancy(self, since: float = 0.0) -> dict[str, JsonValue]:
        """What the engine had to do since `since` (monotonic seconds), as far as remembered. For `debug`."""
        samples = [sample for sample in self._samples if sample.at >= since]
        busy = [sample.load for sample in samples if sample.load.running]
        if not busy:
            return {"samples": len(samples), "busy_samples": 0}
        pool = [load.pool_use for load in busy if load.pool_use is not None]
        return {
            "samples": len(samples),
            "busy_samples": len(busy),
            "running_mean": round(sum(load.running for load in busy) / len(busy), 1),
            "running_peak": max(load.running for load in busy),
            "queued_mean": round(sum(load.queued for load in busy) / len(busy), 1),
            "queued_peak": max(load.queued for load in busy),
            "pool_use_peak": round(max(pool), 3) if pool else None,
            "retractions": samples[-1].load.retractions - samples[0].load.retractions,
        }

    async def _sample(self) -> None:
        self._load = await self._engine.load()
        if self._load is not None:
            self._samples.append(_Sample(time.monotonic(), self._load))
        self._observe(self._load)

    def _idle(self) -> bool:
        """Whether the engine has nothing to do and was not heard of for a while."""
        if self._load is None or self._load.running or self._load.queued or self._engine.in_flight:
            return False
        heard = max(self._probed, self._engine.last_reply)
        if time.monotonic() - heard < self._pace.idle_probe:
            return False
        self._probed = time.monotonic()
        return True
