"""The values that the render processes and the rest of the worker exchange."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from handler.geometry import PixelBox
from handler.layout.detector import Pixels
from handler.schema import DocumentKind, Label, PageWarning


@dataclass(frozen=True, slots=True)
class StagedDocument:
    """A document's unpacked bytes in a file of ours. The file outlives every page read from it."""

    path: Path
    kind: DocumentKind
    sha256: str
    size: int
    filename: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class OpenedDocument:
    """What opening told: how many pages, and whether the file had to be repaired for it."""

    page_count: int
    repaired: bool = False
    warnings: tuple[str, ...] = ()
    tables: frozenset[int] = frozenset()
    """Pages (from 1) that may hold a table; empty where nobody looked."""


@dataclass(frozen=True, slots=True)
class PageImage:
    """One rendered page. Its pixels lie in shared memory named `handle`, until `Renderer.release`."""

    handle: str
    width: int
    height: int
    dpi: float | None
    ink: float
    """Share of pixels that carry ink, 0 to 1."""
    channels: int = 3
    """Bytes per pixel: 3, or 1 for a page without colour."""
    angle: int = 0
    """Degrees turned clockwise against the page as the document has it."""
    warnings: tuple[PageWarning, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of shared memory that its pixels take."""
        return self.width * self.height * self.channels


@dataclass(frozen=True, slots=True)
class CutRequest:
    """One region to cut out and encode for the engine."""

    box: PixelBox
    label: Label
    variant: int = 0
    """0 = as it is; 1 = the changed crop tried once when the first answer repeated itself."""


@dataclass(frozen=True, slots=True)
class Crop:
    """One picture the engine accepts: sides multiples of 28 px, at least 28, ratio under 200."""

    jpeg: bytes = field(repr=False)
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Cut:
    """What became of one `CutRequest`: one crop, or several tiles in reading order for an extreme strip."""

    crops: tuple[Crop, ...]
    ink: float
    """Share of the region's pixels that carry ink, 0 to 1."""
    contrast: float = 1.0
    """Difference between paper and ink, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a page's ink lies inside the given boxes."""

    covered: float
    """0 to 1; 1 for a page without ink."""
    missed: tuple[PixelBox, ...] = ()
    """Areas with ink outside all boxes, worth reading, in reading order."""


@dataclass(frozen=True, slots=True)
class Survey:
    """A page's ink and pictures in one go: of the regions asked for, and of the areas that they miss."""

    coverage: Coverage
    cuts: tuple[Cut, ...]
    missed: tuple[Cut, ...] = ()
    """Of `coverage.missed`, in order, cut as text."""


class Renderer(Protocol):
    """Pages out of documents. All of it runs in child processes with a time and a memory limit.

    Every method may raise `handler.documents.failures.RenderFailure`; one failed call leaves the others alone.
    """

    async def open(self, document: StagedDocument) -> OpenedDocument:
        """Open and count pages. Raises the `InputError` that fits when the document cannot be read at all."""

    async def render(self, document: StagedDocument, page: int, dpi: int, angle: int = 0) -> PageImage:
        """Render page `page` (from 1) at `dpi`, within the pixel limits, turned by `angle` degrees clockwise."""

    async def survey(self, image: PageImage, requests: Sequence[CutRequest]) -> Survey:
        """`coverage` of the boxes asked for and `cut` of them and of what they miss, in one call."""

    async def cut(self, image: PageImage, requests: Sequence[CutRequest]) -> list[Cut]:
        """Cut and encode regions; one answer per request, in order."""

    async def coverage(self, image: PageImage, boxes: Sequence[PixelBox]) -> Coverage:
        """Where the ink is that no box covers."""

    async def figure(self, image: PageImage, box: PixelBox) -> bytes:
        """The region as a JPEG file for people, at the page's own resolution."""

    def pixels(self, image: PageImage) -> Pixels:
        """The page's pixels, a view on the shared memory; valid until `release`."""

    def release(self, image: PageImage) -> None:
        """Give the shared memory back. Releasing twice is harmless."""
