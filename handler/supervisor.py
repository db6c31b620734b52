"""Nothing that the worker started outlives it: what a child does for that, and the process that does it for the engine.

`die_with_parent` is for our own children. Between the worker and its engine, whose children are not ours, stands this
module as a process, run as a script with nothing but the standard library:

    supervisor.py PARENT_PID GRACE_S -- ARGV...

It starts ARGV in its own process group and ends with its exit code (128 + N after signal N). SIGTERM to the group asks
everybody to stop; what still runs GRACE_S seconds later is killed. When the worker dies, by whatever signal, everything
is killed at once. As a subreaper it inherits every orphan, so a grandchild in a session of its own does not get away
either.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
"""Both from <linux/prctl.h>."""
PARENT_MAY_BE_DEAD = signal.SIGHUP
WATCHED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, PARENT_MAY_BE_DEAD}
KILL_PATIENCE_S = 5.0
"""How long killed processes may take to go; one stuck in a driver call never does."""
CANNOT_EXECUTE = 127


def prctl(option: int, value: int) -> None:
    """Set one attribute of this process. Raises `OSError`."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def die_with_parent() -> None:
    """The kernel kills this process when the thread that started it ends. For children to call, first thing."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def spawn(argv: list[str]) -> int:
    """Start the engine, tied to this process's life. Returns its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        die_with_parent()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
        os.execvp(argv[0], argv)  # noqa: S606 - argv is the worker's own
    except OSError as error:
        sys.stderr.write(f"cannot execute {argv[0]}: {error}\n")
        sys.stderr.flush()
    os._exit(CANNOT_EXECUTE)


def reap() -> dict[int, int]:
    """Exit codes of all children that have ended, by pid."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        code = os.waitstatus_to_exitcode(status)
        ended[pid] = code if code >= 0 else 128 - code


def children() -> list[int]:
    """Pids of living children, adopted orphans included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid() and state != "Z":
            found.append(int(stat.parent.name))
    return found


def kill_all() -> None:
    """Kill every descendant: children first, then whoever they leave behind."""
    deadline = time.monotonic() + KILL_PATIENCE_S
    while time.monotonic() < deadline:
        reap()
        left = children()
        if not left:
            return
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        signal.sigtimedwait({signal.SIGCHLD}, 0.05)


def watch(engine: int, parent: int, grace_s: float) -> int:
    """Wait for the engine's end, the worker's end, or the end of the grace period. Returns an exit code."""
    deadline: float | None = None
    while os.getppid() == parent:
        remaining = 3600.0 if deadline is None else deadline - time.monotonic()
        if remaining <= 0:
            return 128 + signal.SIGKILL
        received = signal.sigtimedwait(WATCHED, remaining)
        ended = reap()
        if engine in ended:
            return ended[engine]
        if received and received.si_signo in (signal.SIGTERM, signal.SIGINT) and deadline is None:
            deadline = time.monotonic() + grace_s
    return 128 + signal.SIGKILL


def main() -> int:
    """Supervise one engine from start to end."""
    parent, grace_s, argv = int(sys.argv[1]), float(sys.argv[2]), sys.argv[4:]
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    # The kernel sends this when the *thread* that started us ends, too: the signal only makes us look at getppid().
    prctl(PR_SET_PDEATHSIG, PARENT_MAY_BE_DEAD)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    code = watch(spawn(argv), parent, grace_s)
    kill_all()
    return code


if __name__ == "__main__":
    sys.exit(main())
