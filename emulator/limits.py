"""The numbers of the platform: sizes, lifetimes, rates. Sources are listed in emulator/README.md."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Rate:
    """Requests per window and at the same time; None means unlimited."""

    requests: int
    concurrent: int | None = None
    window_s: float = 10.0


DOCUMENTED_RATES: Mapping[str, Rate] = MappingProxyType(
    {
        "run": Rate(1000, 200),
        "runsync": Rate(2000, 400),
        "status": Rate(2000, 400),
        "stream": Rate(2000, 400),
        "cancel": Rate(100, 20),
        "purge-queue": Rate(2),
    }
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the endpoint refuses, forgets and gives up on. Sizes in bytes, times in seconds."""

    run_body: int = 10_000_000
    runsync_body: int = 20_000_000
    run_result: int = 10_000_000
    runsync_result: int = 20_000_000
    run_retention_s: float = 1800.0
    runsync_retention_s: float = 60.0
    runsync_wait_s: float = 90.0
    runsync_wait_max_s: float = 300.0
    execution_timeout_s: float = 600.0
    execution_timeout_min_s: float = 5.0
    ttl_s: float = 86_400.0
    ttl_min_s: float = 10.0
    ttl_max_s: float = 604_800.0
    queue_free_jobs: int = 50
    """Queue length up to which submissions are never refused."""
    queue_jobs_per_worker: int = 500
    """Above `queue_free_jobs`, submissions are refused beyond this many queued jobs per possible worker."""
    long_poll_s: float = 30.0
    """How long a worker's request for a job or for stop signals is held open."""
    ping_timeout_s: float = 60.0
    """A worker silent for that long is taken for dead."""
    rates: Mapping[str, Rate] = field(default_factory=lambda: DOCUMENTED_RATES)


class RateLimiter:
    """Counts requests per operation in a sliding window, and those open at the moment."""

    def __init__(self, rates: Mapping[str, Rate]) -> None:
        self._rates = rates
        self._recent: dict[str, deque[float]] = {name: deque() for name in rates}
        self._open: dict[str, int] = dict.fromkeys(rates, 0)

    def enter(self, operation: str, now: float) -> float | None:
        """Count one request in; the seconds to wait before the next try when it must be refused."""
        rate = self._rates.get(operation)
        if rate is None:
            return None
        recent = self._recent[operation]
        while recent and recent[0] <= now - rate.window_s:
            recent.popleft()
        if len(recent) >= rate.requests:
            return recent[0] + rate.window_s - now
        if rate.concurrent is not None and self._open[operation] >= rate.concurrent:
            return 1.0
        recent.append(now)
        self._open[operation] += 1
        return None

    def leave(self, operation: str) -> None:
        """Count one request out that `enter` let in."""
        if operation in self._open:
            self._open[operation] -= 1
