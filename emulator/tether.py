"""Runs a worker that does not outlive its emulator: `tether.py PARENT_PID ARGV...`, with the standard library only.

Where the kernel cannot promise that (it is Linux's), the worker runs all the same.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""From <linux/prctl.h>; survives exec."""
CANNOT_EXECUTE = 127


def main() -> int:
    """Tie this process to its parent's life, then become ARGV. Returns only when that cannot be."""
    parent, argv = int(sys.argv[1]), sys.argv[2:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 128 + signal.SIGKILL
    try:
        os.execvp(argv[0], argv)  # noqa: S606 - the worker's command
    except OSError as error:
        sys.stderr.write(f"cannot execute {argv[0]}: {error}\n")
        return CANNOT_EXECUTE


if __name__ == "__main__":
    sys.exit(main())
