"""Runs by scenario and side, and the figures made of them: medians, and medians of ratios within a pair."""

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from bench.measure import Run
from bench.scenarios import Side

Figure = Callable[[Run], float]


@dataclass(frozen=True, slots=True)
class Results:
    """All runs so far; the n-th run of one side is paired with the n-th of the other."""

    runs: list[Run] = field(default_factory=list)

    def of(self, scenario: str, side: Side) -> list[Run]:
        """One side's runs of a scenario, in order."""
        return [run for run in self.runs if run.scenario == scenario and run.side == side]

    def middle(self, scenario: str, side: Side, figure: Figure) -> float | None:
        """The median; None where nothing was run."""
        values = [figure(run) for run in self.of(scenario, side)]
        return median(values) if values else None

    def ratio(self, scenario: str, figure: Figure, other: Side = Side.STOCK) -> float | None:
        """The median over the pairs of ours / the other side's."""
        pairs = list(zip(self.of(scenario, Side.OURS), self.of(scenario, other), strict=False))
        return median(figure(ours) / figure(theirs) for ours, theirs in pairs) if pairs else None


def eff(run: Run) -> float:
    """Ideal makespan / wall; 0 where there is none."""
    return run.eff or 0.0


def pages_per_s(run: Run) -> float:
    """Whole pages a second."""
    return run.pages_per_s


def cpu(run: Run) -> float:
    """CPU milliseconds per page."""
    return run.cpu_ms_per_page


def peak(run: Run) -> float:
    """Peak memory, MB."""
    return run.peak_mb


def occupancy(run: Run) -> float:
    """Slots taken, on average over the busy span."""
    return run.occupancy


def starved(run: Run) -> float:
    """Share of the busy span with a free slot and nothing queued."""
    return run.starved


def first_request(run: Run) -> float:
    """Seconds from the call to the first region's arrival at the engine."""
    return run.first_request_s
