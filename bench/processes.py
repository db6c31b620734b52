"""What a process and its children cost: CPU seconds, and memory with shared pages counted once."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    """Memory of the tree, each shared page counted once, and how many processes.

    Proportional shares of private and file pages, and the memory files that hold page pixels, mapped or not.
    """
    kilobytes = 0.0
    count = 0
    files: dict[int, int] = {}
    for process in tree(pid):
        try:
            shares = dict(_rollup(process.pid))
            files |= dict(_memory_files(process.pid))
        except (FileNotFoundError, ProcessLookupError):
            continue
        count += 1
        kilobytes += shares.get("Pss_Anon:", 0) + shares.get("Pss_File:", 0)
    return (kilobytes + sum(files.values())) / 1024, count


def _rollup(pid: int) -> Iterator[tuple[str, int]]:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        yield name, int(value)


def _memory_files(pid: int) -> Iterator[tuple[int, int]]:
    """Inode and kilobytes of the memory files (`memfd_create`) a process holds open."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            if str(link.readlink()).startswith("/memfd:"):
                status = link.stat()
                yield status.st_ino, status.st_blocks // 2


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
