"""Put on a worker's PYTHONPATH: what test machines cannot give it, or no one may wait for.

* `FULL_DISK_SWITCH`: its volume is full for as long as this file exists. Whatever opens a file for writing under
  `RUNPOD_VOLUME_PATH`, or makes a folder there, gets ENOSPC, as a full network volume would say. Mounting a small file
  system would need privileges.
* `LAYOUT_DOUBLE`: the layout that finds whole pages finds something else (`tests/support/layout_doubles.py`).
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
if os.environ.get("LAYOUT_DOUBLE"):
    from tests.support import layout_doubles

    layout_doubles.take_the_place_of_whole_page(os.environ["LAYOUT_DOUBLE"])
