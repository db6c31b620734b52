"""One measured run: a fresh simulated engine, a fresh process of one side, a warm-up document, then the task."""

import itertools
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from bench.conversation import Done, Task
from bench.corpus.documents import Corpus
from bench.ideal import ideal_s
from bench.processes import measured
from bench.scenarios import Scenario, Side

MODULES = {Side.STOCK: "bench.stock", Side.OURS: "bench.ours", Side.FIFO: "bench.ours"}
ROOT = Path(__file__).parents[1]
LAST_CORE = (os.cpu_count() or 1) - 1


@dataclass(frozen=True, slots=True)
class Run:
    """One side of one scenario, once."""

    scenario: str
    side: Side
    wall_s: float
    pages_per_s: float
    """Pages whose regions all came back whole; a page with losses counts for its share of whole regions."""
    eff: float | None
    """Ideal makespan, the regions in the order of the documents / wall; None on the free GPU."""
    eff_as_sent: float | None
    """The same with this side's whole answers in the order in which it sent them."""
    occupancy: float
    starved: float
    cpu_ms_per_page: float
    peak_mb: float
    first_request_s: float
    requests: int
    cut_short: int
    lost: int
    load_before: float
    """One-minute load average of the machine when it began: a disturbed run is seen here."""
    slowed: float
    """As in the scenario; `pages_per_s` is of the GPU at its own speed."""
    simulator: dict[str, Any] = field(repr=False)
    notes: dict[str, Any] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """For the results file."""
        return asdict(self)


def measure(scenario: Scenario, side: Side, corpus: Corpus) -> Run:
    """Run it. Raises `RuntimeError` when a process dies."""
    with ExitStack() as stack:
        engine = stack.enter_context(simulator(scenario))
        client = stack.enter_context(reader(scenario, side, corpus, engine.port))
        client.perform(Task((str(corpus.warm_up),)))
        engine.get("/bench/reset")
        if scenario.hogged:
            stack.enter_context(hog())
        load = os.getloadavg()[0]
        with measured(client.pid) as usage:
            done = client.perform(Task(tuple(map(str, scenario.paths(corpus))), scenario.at_once))
        report = engine.get("/bench/report")
    expected = max(corpus.regions_read(scenario.documents), 1)
    whole = min(1.0, (done.regions - done.lost) / expected) if done.lost or done.regions < expected else 1.0
    ideal = ideal_s(scenario, corpus) * whole
    return Run(
        scenario=scenario.name,
        side=side,
        wall_s=done.wall_s,
        pages_per_s=done.pages * whole / done.wall_s * scenario.slowed,
        eff=ideal / done.wall_s if ideal else None,
        eff_as_sent=report["ideal_s"] / done.wall_s if ideal else None,
        occupancy=report["occupancy"],
        starved=report["starved"],
        cpu_ms_per_page=(usage.cpu_s - done.watching_s) * 1000 / done.pages,
        peak_mb=usage.peak_mb,
        first_request_s=report["first_arrival"] - done.started,
        requests=report["requests"],
        cut_short=report["cut_short"],
        lost=done.lost,
        load_before=load,
        slowed=scenario.slowed,
        simulator=report,
        notes={**(done.notes or {}), "base_mb": usage.base_mb, "processes": usage.processes},
    )


class Talker:
    """A child process that speaks JSON lines."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._in: IO[str] = process.stdin
        self._out: IO[str] = process.stdout
        self.first = self._hear()

    @property
    def pid(self) -> int:
        """Of the child."""
        return self._process.pid

    def perform(self, task: Task) -> Done:
        """Give a task and wait for what came of it."""
        self._in.write(json.dumps(asdict(task)) + "\n")
        self._in.flush()
        return Done(**self._hear())

    def _hear(self) -> dict[str, Any]:
        line = self._out.readline()
        if not line:
            raise RuntimeError(f"process {self.pid} ended with {self._process.wait()}")
        heard: dict[str, Any] = json.loads(line)
        return heard


@dataclass(frozen=True, slots=True)
class Simulator:
    """A running simulated engine."""

    port: int
    pid: int

    def get(self, path: str) -> dict[str, Any]:
        """One of its addresses."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as response:
            answer: dict[str, Any] = json.load(response)
        return answer


@contextmanager
def spawned(*arguments: str) -> Iterator[Talker]:
    """`python -m ...` of this project; ended with the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield Talker(process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=20)
    finally:
        process.kill()
        process.wait()


@contextmanager
def simulator(scenario: Scenario) -> Iterator[Simulator]:
    """The simulated engine of a scenario."""
    options = {"--gpu": scenario.gpu, "--pool": str(scenario.pool), "--slowed": str(scenario.slowed)}
    with spawned("bench.simulator.server", *itertools.chain(*options.items())) as engine:
        yield Simulator(engine.first["port"], engine.pid)


@contextmanager
def reader(scenario: Scenario, side: Side, corpus: Corpus, port: int) -> Iterator[Talker]:
    """One side's process, ready."""
    layout_s = scenario.layout_s * scenario.slowed
    arguments = ["--port", str(port), "--manifest", str(corpus.manifest), "--layout-s", str(layout_s)]
    if side is Side.STOCK:
        arguments += ["--max-workers", str(scenario.stock_workers)]
    if side is Side.FIFO:
        arguments += ["--first-in-first-out"]
    with spawned(MODULES[side], *arguments) as client:
        yield client


@contextmanager
def hog() -> Iterator[None]:
    """Keep the last core busy."""
    busy = f"import os; os.sched_setaffinity(0, {{{LAST_CORE}}})\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", busy])
    try:
        yield
    finally:
        process.kill()
        process.wait()
