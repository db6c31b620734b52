"""Which pages may hold a table, in documents made on the spot."""

import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from handler.documents import remote
from handler.documents.lean import pymupdf
from handler.documents.pool import RenderPool
from handler.documents.rulings import BYTES_LOOKED_AT, FEWEST_RULINGS, pages_with_tables
from handler.settings import Settings
from tests.support.raw_pdf import raw_pdf, stream
from tests.unit.documents import misbehaviour
from tests.unit.documents.conftest import Staged, lines, pdf

TEXT = b"BT /F1 12 Tf 72 700 Td (The quick brown fox) Tj ET\n"
BORDER = b"72 700 480 0.48 re\nf*\n"
LINE = b"0 0 m 480 0 l S\n"
CLIP = b"72 700 480 12 re W n\n"


def document(content: bytes, packing: bytes = b"", pages: int = 6) -> bytes:
    """A document that shows the same on all its pages."""
    leaves = range(10, 10 + pages)
    leaf = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<<>>>>"
    kids = b" ".join(b"%d 0 R" % number for number in leaves)
    tree = b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, pages)
    entries = b"/Filter %s" % packing if packing else b""
    shared = {1: b"<</Type/Catalog/Pages 2 0 R>>", 2: tree, 4: stream(content, entries)}
    return raw_pdf(shared | dict.fromkeys(leaves, leaf))


def found(tmp_path: Path, data: bytes, password: str | None = None) -> list[int]:
    path = tmp_path / "document.pdf"
    path.write_bytes(data)
    return sorted(pages_with_tables(path, password))


def grid(canvas: Canvas) -> None:
    canvas.grid([50, 150, 250, 350], range(100, 400, 20))


def photograph(canvas: Canvas) -> None:
    canvas.drawImage(ImageReader(Image.new("RGB", (40, 40), "red")), 0, 0, 595, 842)


@pytest.mark.parametrize("packed", [True, False])
def test_pages_with_a_grid_or_a_picture_are_told_from_text(tmp_path: Path, packed: bool) -> None:
    data = pdf(lines, grid, lines, photograph, lines, lines)
    assert found(tmp_path, data if packed else _unpacked(data)) == [2, 4]


def _unpacked(data: bytes) -> bytes:
    written: bytes = pymupdf.open(stream=data).tobytes(expand=255)
    return written


@pytest.mark.parametrize(
    ("content", "table"),
    [
        (TEXT * 50, False),
        (BORDER * FEWEST_RULINGS, True),
        (LINE * FEWEST_RULINGS, True),
        ((TEXT + BORDER) * (FEWEST_RULINGS - 1) + TEXT * 50, False),
        (CLIP * 200 + TEXT, False),
        (b"", False),
    ],
)
def test_lines_and_bars_are_counted_and_clips_are_not(tmp_path: Path, content: bytes, table: bool) -> None:
    assert bool(found(tmp_path, document(content))) is table


@pytest.mark.parametrize(("pages", "looked_at"), [(5, False), (6, True), (48, True), (49, False)])
async def test_very_short_and_long_documents_are_not_looked_at(
    pool: RenderPool, staged: Staged, pages: int, looked_at: bool
) -> None:
    opened = await pool.open(staged(document(LINE * FEWEST_RULINGS, pages=pages)))
    assert opened.page_count == pages
    assert len(opened.tables) == looked_at * pages


@pytest.mark.parametrize("fault", [misbehaviour.die, misbehaviour.hang, misbehaviour.flood, misbehaviour.bug])
async def test_a_look_that_fails_costs_no_document(
    staged: Staged, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., object]
) -> None:
    monkeypatch.setattr(remote, "pages_with_tables", fault)
    with RenderPool(Settings(render_processes=1, render_timeout_s=0.5, render_memory_mb=256)) as own:
        opened = await own.open(staged(document(LINE * FEWEST_RULINGS)))
        assert (opened.page_count, opened.tables) == (6, frozenset())


def test_a_locked_document_is_looked_into_with_its_password(tmp_path: Path) -> None:
    path = tmp_path / "locked.pdf"
    canvas = Canvas(str(path), encrypt=StandardEncryption("secret", strength=128))
    for draw in (lines, lines, grid, lines, lines, lines):
        draw(canvas)
        canvas.showPage()
    canvas.save()
    assert found(tmp_path, path.read_bytes(), "secret") == [3]


def test_what_lies_beyond_the_beginning_is_not_unpacked(tmp_path: Path) -> None:
    padding = b" " * BYTES_LOOKED_AT
    assert not found(tmp_path, document(zlib.compress(padding + LINE * 100), b"/FlateDecode"))


def test_what_is_packed_twice_is_not_unpacked_and_may_hold_one(tmp_path: Path) -> None:
    content = zlib.compress(zlib.compress(TEXT))
    assert found(tmp_path, document(content, b"[/FlateDecode/FlateDecode]")) == [1, 2, 3, 4, 5, 6]
    assert not found(tmp_path, document(zlib.compress(TEXT).hex().encode(), b"[/ASCIIHexDecode/FlateDecode]"))


async def test_a_damaged_page_complains_when_it_is_drawn_though_it_was_looked_at(
    pool: RenderPool, staged: Staged
) -> None:
    damaged = staged(document(zlib.compress(LINE * 50 + TEXT * 500)[:-60], b"/FlateDecode"))
    opened = await pool.open(damaged)
    assert opened.tables
    for page in (1, 2):
        image = await pool.render(damaged, page, 72)
        pool.release(image)
        assert image.warnings
