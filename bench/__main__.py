"""`make bench`: every scenario, the sides in turn, as often as asked; a table, and the raw figures as JSON."""

import argparse
import json
import os
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.corpus.documents import Corpus, make_corpus
from bench.goals import GOALS
from bench.measure import Run, measure
from bench.results import Results, cpu, eff, first_request, occupancy, pages_per_s, peak, starved
from bench.scenarios import QUICK, Scenario, Side, scenarios

RESULTS = Path(__file__).parent / "results"
FIGURES = {
    "pages/s": pages_per_s,
    "eff": eff,
    "occupancy": occupancy,
    "starved": starved,
    "CPU ms/page": cpu,
    "peak MB": peak,
    "first request s": first_request,
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the short scenarios, once")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", help="only scenarios whose name begins so; may be repeated")
    parser.add_argument("--slowed", type=float, default=1.0, help="slow motion, for a machine that others keep busy")
    parser.add_argument("--side", choices=[side.value for side in Side], help="only this side")
    args = parser.parse_args()
    corpus = make_corpus()
    chosen = [
        replace(s, slowed=args.slowed, sides=tuple(x for x in s.sides if args.side in (None, x)))
        for s in scenarios(corpus)
        if _wanted(s.name, args.quick, args.only)
    ]
    results = Results()
    path = RESULTS / time.strftime("%Y%m%d-%H%M%S.json")
    for run in runs(chosen, corpus, 1 if args.quick else args.repeats):
        results.runs.append(run)
        print(_line(run), flush=True)
        write(results, path)
    print("\n" + medians(results, chosen) + "\n\n" + verdicts(results) + f"\n\n{path}")


def runs(chosen: Sequence[Scenario], corpus: Corpus, repeats: int) -> Iterable[Run]:
    """All scenarios, repeated; the sides of one in turn, so that both sides of a pair see the same machine."""
    for _ in range(repeats):
        for scenario in chosen:
            for side in scenario.sides:
                yield measure(scenario, side, corpus)


def medians(results: Results, chosen: Sequence[Scenario]) -> str:
    """Every scenario and side, medians of the repeats."""
    rows = [("scenario", "side", *FIGURES)]
    for scenario in chosen:
        for side in scenario.sides:
            values = (results.middle(scenario.name, side, figure) for figure in FIGURES.values())
            rows.append((scenario.name, side, *("-" if v is None else f"{v:.3g}" for v in values)))
    return table(rows)


def verdicts(results: Results) -> str:
    """Every goal and whether it holds."""
    return table([("what", "goal", "measured", ""), *(goal.row(results) for goal in GOALS)])


def table(rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first row is its head."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])


def write(results: Results, path: Path) -> None:
    """The raw figures so far, with what is needed to judge them."""
    RESULTS.mkdir(exist_ok=True)
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "machine": platform.machine()}
    content: dict[str, Any] = {
        "machine": machine,
        "goals": [goal.row(results) for goal in GOALS],
        "runs": [run.as_json() for run in results.runs],
    }
    path.write_text(json.dumps(content, indent=1))


def _wanted(name: str, quick: bool, only: list[str] | None) -> bool:
    if only:
        return any(name.startswith(beginning) for beginning in only)
    return name in QUICK or not quick


def _line(run: Run) -> str:
    eff_text = "-" if run.eff is None else f"{run.eff:.3f} (as sent {run.eff_as_sent:.3f})"
    return (
        f"{run.scenario:<32} {run.side:<8} {run.pages_per_s:7.2f} pages/s  eff {eff_text}  occ {run.occupancy:5.1f}  "
        f"starved {run.starved:.2f}  cpu {run.cpu_ms_per_page:6.1f} ms/page  peak {run.peak_mb:5.0f} MB  "
        f"first {run.first_request_s:.2f} s  lost {run.lost}  load {run.load_before:.1f}"
    )


if __name__ == "__main__":
    main()
