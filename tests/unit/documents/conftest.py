"""One render pool for the package, and documents drawn on the spot."""

import hashlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from handler.documents.page import StagedDocument
from handler.documents.pool import RenderPool
from handler.schema import DocumentKind
from handler.settings import Settings

Staged = Callable[..., StagedDocument]


@pytest.fixture(scope="package")
def pool() -> Iterator[RenderPool]:
    with RenderPool(Settings(render_timeout_s=10, render_memory_mb=1024)) as started:
        yield started


@pytest.fixture
def staged(tmp_path: Path) -> Staged:
    """Writes bytes to a file of its own and says what they are."""
    numbers = iter(range(100))

    def write(content: bytes, kind: DocumentKind = DocumentKind.PDF, password: str | None = None) -> StagedDocument:
        path = tmp_path / f"document-{next(numbers)}"
        path.write_bytes(content)
        return StagedDocument(path, kind, hashlib.sha256(content).hexdigest(), len(content), password=password)

    return write


def pdf(*pages: Callable[[Canvas], None], size: tuple[float, float] = (595, 842)) -> bytes:
    """A PDF whose pages the given functions draw."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=size, invariant=True, pageCompression=1)
    for draw in pages:
        draw(canvas)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def lines(canvas: Canvas) -> None:
    """Twenty lines of text in the upper half."""
    canvas.setFont("Helvetica", 12)
    for number in range(20):
        canvas.drawString(60, 780 - 18 * number, f"Line {number}: the quick brown fox jumps over the lazy dog")


def blank(canvas: Canvas) -> None:
    """Nothing at all."""
