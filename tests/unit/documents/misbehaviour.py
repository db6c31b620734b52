"""What a hostile page may do to the process that draws it. Imports little: render processes load it."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from handler.documents import crops
from handler.documents.buffers import mapped_page
from handler.documents.page import Cut, CutRequest, PageImage

MARK = 77


def die(*args: object) -> None:
    """As a crash of the engine does."""
    os.kill(os.getpid(), signal.SIGKILL)


def die_first(image: PageImage, requests: Sequence[CutRequest]) -> list[Cut]:
    """Die; and cut, when called again for the same page."""
    with mapped_page(image.handle, image.width, image.height, image.channels) as page:
        if page.mask[0, 0] != MARK:
            page.mask[0, 0] = MARK
            die()
        return [crops.cut(page.pixels, request) for request in requests]


def hang(*args: object) -> None:
    """As an endless drawing does."""
    time.sleep(60)


def wait(begun: Path, opened: Path, *args: object) -> None:
    """Tell through one pipe that it has begun, and wait for the other; then fail."""
    begun.write_bytes(b"")
    opened.read_bytes()
    raise ValueError("nothing was drawn")


def bug(*args: object) -> None:
    """As a library does that was not made for what it is given."""
    raise AttributeError("no such thing")


def flood(*args: object) -> int:
    """As a decompression bomb does."""
    return len(bytearray(1024 * 1024 * 1024))
