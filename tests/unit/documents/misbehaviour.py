"""What a hostile page may do to the process that draws it. Imports little: render processes load it."""

import os
import signal
import time


def die(*args: object) -> None:
    """As a crash of the engine does."""
    os.kill(os.getpid(), signal.SIGKILL)


def hang(*args: object) -> None:
    """As an endless drawing does."""
    time.sleep(60)


def flood(*args: object) -> int:
    """As a decompression bomb does."""
    return len(bytearray(1024 * 1024 * 1024))
