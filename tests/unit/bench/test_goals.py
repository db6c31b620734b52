import json
from dataclasses import replace

from bench.goals import GOALS, Goal
from bench.measure import Run
from bench.results import Results, cpu, pages_per_s
from bench.scenarios import Side

RUN = Run(
    scenario="155 pages, G2",
    side=Side.OURS,
    wall_s=20.0,
    pages_per_s=8.0,
    eff=0.98,
    eff_as_sent=0.97,
    occupancy=61.0,
    starved=0.05,
    cpu_ms_per_page=30.0,
    peak_mb=450.0,
    first_request_s=0.2,
    requests=1860,
    cut_short=0,
    lost=0,
    load_before=0.5,
    slowed=1.0,
    simulator={},
    notes={},
)


def pairs(*rates: tuple[float, float]) -> Results:
    ours = [replace(RUN, pages_per_s=rate) for rate, _ in rates]
    stock = [replace(RUN, side=Side.STOCK, pages_per_s=rate) for _, rate in rates]
    return Results([run for pair in zip(stock, ours, strict=True) for run in pair])


def test_ratios_are_made_within_pairs() -> None:
    # A machine that was busy during the second pair slows both of its sides.
    assert pairs((8.0, 4.0), (2.0, 1.0), (9.0, 3.0)).ratio(RUN.scenario, pages_per_s) == 2.0


def test_a_goal_that_was_not_measured_neither_holds_nor_falls_short() -> None:
    assert all(goal.holds(Results()) is None for goal in GOALS)
    assert GOALS[0].row(Results())[2:] == ("-", "not run")


def test_a_goal_is_judged_by_the_median() -> None:
    results = Results([replace(RUN, cpu_ms_per_page=ms) for ms in (10.0, 30.0, 90.0)])
    middle = Goal("CPU", 30.0, False, lambda found: found.middle(RUN.scenario, Side.OURS, cpu))
    assert middle.holds(results)
    assert not replace(middle, limit=29.0).holds(results)
    assert replace(middle, limit=29.0).row(results)[3] == "FALLS SHORT"


def test_a_run_can_be_kept_as_json() -> None:
    assert json.loads(json.dumps(RUN.as_json()))["side"] == "ours"
