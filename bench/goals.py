"""What must hold, each as a figure of the results and a limit."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.results import Figure, Results, cpu, eff, first_request, occupancy, pages_per_s, peak, starved
from bench.scenarios import Side

G1, G2, G0 = "155 pages, G1", "155 pages, G2", "155 pages, G0"
SHORT, SCANS, MIXED = "16 x 3 pages, G2", "40 scans, G2", "20 mixed, G2"
HOGGED, POOL = "155 pages, G2, one core hogged", "155 pages, G2, KV pool 65536"
SIXTEEN, LONG = "16 pages, G2", "620 pages, G2"


@dataclass(frozen=True, slots=True)
class Goal:
    """One row of the table."""

    what: str
    limit: float
    at_least: bool
    value: Callable[[Results], float | None]

    def holds(self, results: Results) -> bool | None:
        """None where it was not measured."""
        value = self.value(results)
        if value is None:
            return None
        return value >= self.limit if self.at_least else value <= self.limit

    def row(self, results: Results) -> tuple[str, str, str, str]:
        """What, goal, measured, verdict."""
        value = self.value(results)
        sign = ">=" if self.at_least else "<="
        verdict = {None: "not run", True: "holds", False: "FALLS SHORT"}[self.holds(results)]
        return self.what, f"{sign} {self.limit:g}", "-" if value is None else f"{value:.3g}", verdict


def _ours(scenario: str, figure: Figure) -> Callable[[Results], float | None]:
    return lambda results: results.middle(scenario, Side.OURS, figure)


def _ratio(scenario: str, figure: Figure, other: Side = Side.STOCK) -> Callable[[Results], float | None]:
    return lambda results: results.ratio(scenario, figure, other)


def _growth(results: Results) -> float | None:
    long, short = (results.middle(scenario, Side.OURS, peak) for scenario in (LONG, G2))
    return None if long is None or short is None else long / short - 1


at_least = partial(Goal, at_least=True)
at_most = partial(Goal, at_least=False)

GOALS = (
    at_least("155 pages, G1: eff", 0.97, value=_ours(G1, eff)),
    at_least("155 pages, G1: occupancy of 64", 60, value=_ours(G1, occupancy)),
    at_most("155 pages, G1: starved", 0.08, value=_ours(G1, starved)),
    at_least("155 pages, G2: eff", 0.97, value=_ours(G2, eff)),
    at_least("155 pages, G2: occupancy of 64", 60, value=_ours(G2, occupancy)),
    at_most("155 pages, G2: starved", 0.08, value=_ours(G2, starved)),
    at_least("16 x 3 pages, G2: pages/s", 7.3, value=_ours(SHORT, pages_per_s)),
    at_least("16 x 3 pages, G2: eff", 0.94, value=_ours(SHORT, eff)),
    at_least("16 x 3 pages, G2: pages/s, x stock one by one", 2.8, value=_ratio(SHORT, pages_per_s)),
    at_least("40 scans, G2: eff", 0.95, value=_ours(SCANS, eff)),
    at_least("20 mixed, G2: eff", 0.95, value=_ours(MIXED, eff)),
    at_most("CPU per page, text, x stock", 0.36, value=_ratio(G2, cpu)),
    at_most("CPU per page, mixed, x stock", 0.50, value=_ratio(MIXED, cpu)),
    at_most("CPU per page, scans, x stock", 0.58, value=_ratio(SCANS, cpu)),
    at_least("155 pages, G0: pages/s, x stock", 4.0, value=_ratio(G0, pages_per_s)),
    at_most("peak memory, text, MB", 500, value=_ours(G2, peak)),
    at_most("peak memory, scans, MB", 600, value=_ours(SCANS, peak)),
    at_most("peak memory, growth from 155 to 620 pages", 0.10, value=_growth),
    at_most("first region request after a warm start, s", 0.25, value=_ours(G2, first_request)),
    at_least("one core hogged, G2: eff", 0.97, value=_ours(HOGGED, eff)),
    at_most("one core hogged, G2: starved", 0.08, value=_ours(HOGGED, starved)),
    at_least("KV pool 65536, G2: pages/s, x stock", 1.7, value=_ratio(POOL, pages_per_s)),
    at_least("16 pages, G2: head start, x first in first out", 1.12, value=_ratio(SIXTEEN, pages_per_s, Side.FIFO)),
)
