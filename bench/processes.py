"""What a process and its children cost: CPU seconds, and memory with shared pages counted once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

SAMPLE_S = 0.4
MB = 1 << 20


@dataclass(slots=True)
class Usage:
    """Filled in when the measured block has ended."""

    cpu_s: float = 0.0
    peak_mb: float = 0.0
    base_mb: float = 0.0
    processes: int = 0


def tree(pid: int) -> list[psutil.Process]:
    """A process and all that descend from it."""
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


def cpu_seconds(pid: int) -> float:
    """User and system time of the tree, ended and waited-for children included."""
    total = 0.0
    for process in tree(pid):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def memory_mb(pid: int) -> tuple[float, int]:
    """Proportional set size of the tree (each shared page counted once in the sum), and how many processes."""
    kilobytes = count = 0
    for process in tree(pid):
        try:
            lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
            kilobytes += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except (FileNotFoundError, ProcessLookupError, StopIteration):
            continue
        count += 1
    return kilobytes / 1024, count


@contextmanager
def measured(pid: int) -> Iterator[Usage]:
    """Measure the tree while the block runs."""
    usage = Usage()
    usage.base_mb, _ = memory_mb(pid)
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(SAMPLE_S):
            megabytes, count = memory_mb(pid)
            usage.peak_mb = max(usage.peak_mb, megabytes)
            usage.processes = max(usage.processes, count)

    watcher = threading.Thread(target=watch, daemon=True)
    before = cpu_seconds(pid)
    watcher.start()
    try:
        yield usage
    finally:
        usage.cpu_s = cpu_seconds(pid) - before
        stop.set()
        watcher.join()
