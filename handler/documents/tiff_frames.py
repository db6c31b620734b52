"""The pictures of a TIFF, each by itself.

Pillow finds frames by reading all before them and gives up at the first broken one: the pictures behind it would not
exist. Here the chain of directories is walked, and each frame is shown to Pillow as if it were the first.
"""

import mmap
from pathlib import Path
from typing import Literal, TypeAlias

FRAMES_LIMIT = 100_000
BIG_TIFF = 43
"""The version number of BigTIFF, whose offsets have 8 bytes."""

Order: TypeAlias = Literal["little", "big"]


class TiffFrames:
    """A TIFF file, mapped privately: what is written to it here never reaches the file."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self._order: Order = "little" if self._mapped[:2] == b"II" else "big"
        big = self._number(2, 2) == BIG_TIFF
        self._first_at, self._offset_bytes = (8, 8) if big else (4, 4)
        self._count_bytes, self._entry_bytes = (8, 20) if big else (2, 12)
        self.directories = self._chain()

    def at(self, frame: int) -> mmap.mmap:
        """The file with frame `frame` (from 0) as its first. Good until the next call."""
        offset = self.directories[frame].to_bytes(self._offset_bytes, self._order)
        self._mapped[self._first_at : self._first_at + self._offset_bytes] = offset
        self._mapped.seek(0)
        return self._mapped

    def _chain(self) -> tuple[int, ...]:
        """Places of the directories, up to the chain's end, a loop or a place outside the file."""
        places: dict[int, None] = {}
        at = self._number(self._first_at, self._offset_bytes)
        while at and at not in places and len(places) < FRAMES_LIMIT:
            entries = self._number(at, self._count_bytes)
            if not entries:
                break
            places[at] = None
            at = self._number(at + self._count_bytes + self._entry_bytes * entries, self._offset_bytes)
        return tuple(places)

    def _number(self, at: int, size: int) -> int:
        """An unsigned number; 0 outside the file."""
        found = self._mapped[at : at + size]
        return int.from_bytes(found, self._order) if len(found) == size else 0
