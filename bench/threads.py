"""CPU seconds per kind of thread of this process: where inside it the time goes."""

import threading
import time
from collections import defaultdict
from pathlib import Path

PERIOD_S = 0.5
WATCHER = "bench-clock"
TICK_S = 0.01
"""Of /proc/self/task/*/stat."""


class ThreadClock:
    """Samples the threads' own CPU clocks, since those of an ended thread are gone. Threads are told by name."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[str, float]] = {}
        self._base: dict[int, float] = {}
        threading.Thread(target=self._run, name=WATCHER, daemon=True).start()

    def restart(self) -> None:
        """Count from now."""
        self._seen.clear()
        self._base = {tid: seconds for tid, (_, seconds) in self._sample().items()}

    def seconds(self) -> dict[str, float]:
        """CPU seconds per kind of thread since `restart`."""
        self._seen |= self._sample()
        total: defaultdict[str, float] = defaultdict(float)
        for tid, (name, seconds) in self._seen.items():
            total[name] += seconds - self._base.get(tid, 0.0)
        return {name: round(seconds, 2) for name, seconds in total.items() if seconds > 0}

    def _run(self) -> None:
        while True:
            time.sleep(PERIOD_S)
            self._seen |= self._sample()

    def _sample(self) -> dict[int, tuple[str, float]]:
        found = {}
        for thread in threading.enumerate():
            try:
                stat = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            fields = stat.rpartition(")")[2].split()
            seconds = (int(fields[11]) + int(fields[12])) * TICK_S
            found[thread.native_id or 0] = (_kind(thread.name), seconds)
        return found


def _kind(name: str) -> str:
    """`Thread-3 (recognition_worker)` -> `recognition_worker`, `ThreadPoolExecutor-0_7` -> `ThreadPoolExecutor`."""
    if "(" in name:
        return name.partition("(")[2].rstrip(")")
    return name.rstrip("0123456789_-")
