"""What a run looked like from inside the engine: occupancy over time, starvation, and what was really read."""

from collections import defaultdict
from dataclasses import dataclass, field

from bench.simulator.scheduler import Request, Scheduler, ideal_makespan

BIN_S = 0.1


@dataclass(slots=True)
class Record:
    """Filled in by the server; times are seconds of one monotonic clock."""

    slots: int
    requests: list[Request] = field(default_factory=list)
    cancelled: int = 0
    first_arrival: float | None = None
    last_finish: float = 0.0
    busy_s: float = 0.0
    occupied: float = 0.0
    fed_s: float = 0.0
    """Seconds in which all slots were taken or something queued."""
    worst_lag_s: float = 0.0
    """How late the latest step ended by the clock: the simulator's own honesty."""
    most_running: int = 0
    bins: dict[int, float] = field(default_factory=lambda: defaultdict(float))

    def arrived(self, request: Request) -> None:
        """A request came in."""
        if self.first_arrival is None:
            self.first_arrival = request.arrived

    def stepped(self, start: float, seconds: float, running: int, queued: int) -> None:
        """One step of the engine, from `start`, with `running` slots taken."""
        self.busy_s += seconds
        self.occupied += running * seconds
        self.most_running = max(self.most_running, running)
        if queued or running >= self.slots:
            self.fed_s += seconds
        self.bins[int((start - (self.first_arrival or start)) / BIN_S)] += running * seconds / BIN_S

    def finished(self, request: Request) -> None:
        """A request was answered."""
        self.requests.append(request)
        self.last_finish = max(self.last_finish, request.finished)

    def report(self, scheduler: Scheduler) -> dict[str, object]:
        """The figures of the run, ready for JSON."""
        whole = sorted((r for r in self.requests if r.complete), key=lambda r: r.arrived)
        span = max(self.last_finish - (self.first_arrival or 0.0), 1e-9)
        last_bin = max(self.bins, default=-1)
        return {
            "requests": len(self.requests),
            "complete": len(whole),
            "cut_short": len(self.requests) - len(whole),
            "cancelled": self.cancelled,
            "complete_answer_tokens": sum(r.answer_tokens for r in whole),
            "prompt_tokens": sum(r.prompt_tokens for r in whole),
            "first_arrival": self.first_arrival,
            "last_finish": self.last_finish,
            "span_s": span,
            "occupancy": self.occupied / span,
            "starved": 1 - self.fed_s / span,
            "busy": self.busy_s / span,
            "most_running": self.most_running,
            "retractions": scheduler.retractions,
            "worst_lag_s": self.worst_lag_s,
            "ideal_s": ideal_makespan(scheduler.gpu, whole, slots=scheduler.slots, pool=scheduler.pool),
            "occupancy_over_time": [round(self.bins.get(i, 0.0), 2) for i in range(last_bin + 1)],
            "bin_s": BIN_S,
        }
