"""The pictures of docs/performance.md, from a results file: occupancy over time, and CPU per page by what spends it."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.scenarios import Side

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
OCCUPANCY = ("155 pages, G2", "40 scans, G2", "16 x 3 pages, G2")
COSTS = ("155 pages, G2", "20 mixed, G2", "40 scans, G2")
COLOURS = {Side.STOCK: "#b5651d", Side.OURS: "#1f5f8b"}
CHILDREN = "render processes"

Runs = Sequence[dict[str, Any]]


def occupancy(runs: Runs, path: Path) -> None:
    """Slots taken in the engine over time, both sides, one panel a scenario."""
    figure, panels = plt.subplots(len(OCCUPANCY), 1, figsize=(8, 6.5), layout="constrained")
    for panel, scenario in zip(panels, OCCUPANCY, strict=True):
        for side in (Side.STOCK, Side.OURS):
            run = _last(runs, scenario, side)
            taken = run["simulator"]["occupancy_over_time"] if run else []
            seconds = [i * run["simulator"]["bin_s"] for i in range(len(taken))] if run else []
            panel.plot(seconds, taken, color=COLOURS[side], label=side.value, linewidth=1)
        panel.set(title=scenario, ylabel="slots of 64", ylim=(0, 66))
        panel.legend(loc="lower right")
    panels[-1].set_xlabel("seconds since the first request")
    figure.savefig(path)
    plt.close(figure)


def costs(runs: Runs, path: Path) -> None:
    """CPU milliseconds per page, stacked by kind of thread and process."""
    figure, panel = plt.subplots(figsize=(8, 4.5), layout="constrained")
    bars = [(scenario, side, _spent(run)) for scenario, side, run in _wanted(runs)]
    kinds = sorted({kind for _, _, spent in bars for kind in spent})
    floor = [0.0] * len(bars)
    for kind in kinds:
        heights = [spent.get(kind, 0.0) for _, _, spent in bars]
        panel.barh(range(len(bars)), heights, left=floor, label=kind)
        floor = [a + b for a, b in zip(floor, heights, strict=True)]
    panel.set_yticks(range(len(bars)), [f"{scenario}\n{side}" for scenario, side, _ in bars])
    panel.set_xlabel("CPU milliseconds per page")
    panel.legend(fontsize="small")
    figure.savefig(path)
    plt.close(figure)


def _wanted(runs: Runs) -> list[tuple[str, str, dict[str, Any]]]:
    found = ((s, side.value, _last(runs, s, side)) for s in reversed(COSTS) for side in (Side.OURS, Side.STOCK))
    return [(scenario, side, run) for scenario, side, run in found if run]


def _spent(run: dict[str, Any]) -> dict[str, float]:
    """Milliseconds per page by kind of thread; what is left of the total was spent in child processes."""
    pages = run["pages_per_s"] * run["wall_s"] / run["slowed"]
    threads = {k: s * 1000 / pages for k, s in run["notes"]["thread_cpu_s"].items() if k != "bench-clock"}
    left = run["cpu_ms_per_page"] - sum(threads.values())
    return {**threads, CHILDREN: left} if run["side"] == Side.OURS else threads


def _last(runs: Runs, scenario: str, side: Side) -> dict[str, Any] | None:
    return next((run for run in reversed(runs) if run["scenario"] == scenario and run["side"] == side), None)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, nargs="?", help="default: the newest")
    args = parser.parse_args()
    chosen = args.results or max((Path(__file__).parent / "results").glob("*.json"))
    runs = json.loads(chosen.read_text())["runs"]
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "bench", "font.size": 9})
    PICTURES.mkdir(parents=True, exist_ok=True)
    occupancy(runs, PICTURES / "occupancy.svg")
    costs(runs, PICTURES / "cpu.svg")


if __name__ == "__main__":
    main()
