"""Put on a worker's PYTHONPATH: its volume is full for as long as the file named by `FULL_DISK_SWITCH` exists.

Whatever opens a file for writing under `RUNPOD_VOLUME_PATH`, or makes a folder there, gets ENOSPC, as a full network
volume would say. Mounting a small file system would need privileges that test machines do not give.
"""

import errno
import os
import sys
from pathlib import Path
from typing import Any

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    if event == "open":
        path, _, flags = args
        writes = isinstance(flags, int) and flags & WRITING
    elif event == "os.mkdir":
        path, writes = args[0], True
    else:
        return
    if writes and isinstance(path, str | os.PathLike) and os.fspath(path).startswith(_VOLUME) and _is_full():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))


def _is_full() -> bool:
    return Path(_SWITCH).exists()


_SWITCH = os.environ.get("FULL_DISK_SWITCH", "")
_VOLUME = os.environ.get("RUNPOD_VOLUME_PATH", "")
if _SWITCH and _VOLUME:
    sys.addaudithook(_refuse)
