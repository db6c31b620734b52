"""Which processes are left of those that should have ended."""

import time
from collections.abc import Iterable

import psutil

POLL_S = 0.02


def survivors(processes: Iterable[psutil.Process], within_s: float = 5.0) -> list[psutil.Process]:
    """Those that still run after `within_s` seconds; returns as soon as none does.

    A signal that was sent has not ended anything yet. An orphan that has ended may wait for PID 1 to take note of it.
    """
    deadline = time.monotonic() + within_s
    left = list(processes)
    while (left := [process for process in left if runs(process)]) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return left


def runs(process: psutil.Process) -> bool:
    """Whether it is there and more than an entry in the process table."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def processes(*pids: int) -> list[psutil.Process]:
    """Those of the numbers that there are."""
    return [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
