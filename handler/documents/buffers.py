"""Page pixels shared between the worker and its render processes.

Anonymous memory files instead of named shared memory: they are not bounded by the size of /dev/shm (64 MB in a
container by default), have no name to clean up, and vanish with the last process that holds them, however it ends.
A render process of the same user opens one through /proc. In front of the pixels lies the page's ink mask, so that
looking for missed ink does not touch the pixels again.
"""

import itertools
import mmap
import os
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from handler.layout.detector import Pixels

Mask: TypeAlias = NDArray[np.uint8]
"""Ink of a page on a coarser grid: 255 where there is ink, 0 elsewhere."""

COLOUR = 3
GREY = 1
"""Bytes per pixel. A page without colour is drawn, cut and kept as one plane, for a third of the memory traffic."""
MASK_SAMPLES = 450_000
"""Pixels of a page that its ink mask looks at: every third each way at 200 dpi."""
REUSED_BYTES = 16 * 1024 * 1024
"""Buffers that held at most this much are kept for the next page: fresh memory for an A4 page costs 10 ms to touch."""

_numbers = itertools.count()
"""Descriptors are reused; a handle never is, so that an old one cannot name a newer page."""


@dataclass(frozen=True, slots=True)
class MappedPage:
    """A page in shared memory, for as long as it is mapped."""

    pixels: Pixels
    mask: Mask


def mask_shape(width: int, height: int) -> tuple[int, int]:
    """Rows and columns of the ink mask of a page."""
    step = max(1, round((width * height / MASK_SAMPLES) ** 0.5))
    return max(1, height // step), max(1, width // step)


class PageBuffer:
    """The worker's side of one page."""

    def __init__(self, capacity: int) -> None:
        """`capacity` in bytes of pixels. Only what is written to takes memory."""
        self._descriptor = os.memfd_create("glmocr-page", os.MFD_CLOEXEC)
        os.ftruncate(self._descriptor, 3 * MASK_SAMPLES + mmap.PAGESIZE + capacity)
        self.renew()

    def renew(self) -> None:
        """Start a new page under a new handle."""
        self.handle = f"{next(_numbers)}:/proc/{os.getpid()}/fd/{self._descriptor}"

    def pixels(self, width: int, height: int, channels: int) -> Pixels:
        """A read-only view, height x width x channels."""
        offset = _pixels_at(width, height)
        mapped = mmap.mmap(self._descriptor, width * height * channels, mmap.MAP_SHARED, mmap.PROT_READ, offset=offset)
        return np.frombuffer(mapped, np.uint8).reshape(height, width, channels)

    def close(self) -> None:
        """Give the memory back; views keep theirs as long as they live."""
        os.close(self._descriptor)


class BufferStore:
    """The worker's buffers: those in use, and a few to use again."""

    def __init__(self, capacity: int, spare: int) -> None:
        """`capacity` in bytes of pixels per page; `spare` is how many unused buffers are kept."""
        self._capacity = capacity
        self._spare = spare
        self._used: dict[str, PageBuffer] = {}
        self._free: list[PageBuffer] = []
        self._held: Counter[str] = Counter()
        self._left: dict[str, PageBuffer] = {}

    def __getitem__(self, handle: str) -> PageBuffer:
        return self._used[handle]

    def __len__(self) -> int:
        return len(self._used)

    def take(self) -> PageBuffer:
        """A buffer under a handle that was never used before."""
        buffer = self._free.pop() if self._free else PageBuffer(self._capacity)
        buffer.renew()
        self._used[buffer.handle] = buffer
        return buffer

    @contextmanager
    def held(self, handle: str) -> Iterator[None]:
        """A process works on this page: inside the block its memory goes to no other, though it be given back."""
        self._held[handle] += 1
        try:
            yield
        finally:
            self._held[handle] -= 1
            if not self._held[handle]:
                del self._held[handle]
                if handle in self._left:
                    self._left.pop(handle).close()

    def give_back(self, handle: str, nbytes: int) -> None:
        """The page of `nbytes` is done with. Unknown handles are ignored: they were given back before."""
        self._end(handle, keep=nbytes <= REUSED_BYTES)

    def discard(self, handle: str) -> None:
        """As `give_back`, for a page of unknown size."""
        self._end(handle, keep=False)

    def close(self) -> None:
        """Give all memory back."""
        for buffer in (*self._used.values(), *self._free, *self._left.values()):
            buffer.close()
        self._used.clear()
        self._free.clear()
        self._left.clear()

    def _end(self, handle: str, *, keep: bool) -> None:
        buffer = self._used.pop(handle, None)
        if buffer is None:
            return
        if handle in self._held:
            self._left[handle] = buffer
        elif keep and len(self._free) < self._spare:
            self._free.append(buffer)
        else:
            buffer.close()


class Mappings:
    """The render process's side: its mappings, kept for as long as their buffers are used again.

    Mapping an A4 page costs 1.3 ms even where its memory is there already, and every page is mapped two or three times.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._mapped: OrderedDict[int, mmap.mmap] = OrderedDict()

    def of(self, handle: str, size: int) -> NDArray[np.uint8]:
        """The first `size` bytes of a buffer."""
        descriptor = os.open(handle.partition(":")[2], os.O_RDWR)
        try:
            inode = os.fstat(descriptor).st_ino
            mapped = self._mapped.pop(inode, None)
            if mapped is None or len(mapped) < size:
                # Populating in one go costs half of what faulting page by page does.
                mapped = mmap.mmap(descriptor, size, mmap.MAP_SHARED | mmap.MAP_POPULATE)
        finally:
            os.close(descriptor)
        if len(mapped) <= REUSED_BYTES:
            self._mapped[inode] = mapped
            while len(self._mapped) > self._kept:
                self._mapped.popitem(last=False)
        return np.frombuffer(mapped, np.uint8)[:size]


_mappings = Mappings(kept=6)


@contextmanager
def mapped_page(handle: str, width: int, height: int, channels: int) -> Iterator[MappedPage]:
    """The render process's side: pixels and mask to write to."""
    rows, columns = mask_shape(width, height)
    offset = _pixels_at(width, height)
    whole = _mappings.of(handle, offset + width * height * channels)
    pixels = whole[offset:].reshape(height, width, channels)
    yield MappedPage(pixels, whole[: rows * columns].reshape(rows, columns))


@contextmanager
def mapped_pixels(handle: str, width: int, height: int, channels: int) -> Iterator[Pixels]:
    """The render process's side: a drawn page's pixels, read-only."""
    with mapped_page(handle, width, height, channels) as page:
        page.pixels.flags.writeable = False
        yield page.pixels


@contextmanager
def mapped_mask(handle: str, width: int, height: int) -> Iterator[Mask]:
    """The render process's side: a drawn page's ink mask, read-only."""
    with mapped_page(handle, width, height, GREY) as page:
        page.mask.flags.writeable = False
        yield page.mask


def _pixels_at(width: int, height: int) -> int:
    rows, columns = mask_shape(width, height)
    return -(-rows * columns // mmap.PAGESIZE) * mmap.PAGESIZE
