"""The render processes: real ones, with real documents, killed and hung on purpose."""

import asyncio
import io
import os
import signal
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from handler.documents import remote
from handler.documents.failures import RenderFailure
from handler.documents.page import CutRequest
from handler.documents.pool import RenderPool, Task
from handler.documents.turns import Rank
from handler.errors import DocumentUnreadable, PasswordRequired, PasswordWrong
from handler.geometry import PixelBox
from handler.schema import DocumentKind, Label, Reason
from handler.settings import Settings
from tests.support.survivors import processes, survivors
from tests.unit.documents import misbehaviour
from tests.unit.documents.conftest import Staged, blank, lines, pdf


async def test_a_page_comes_as_pixels_crops_coverage_and_figure(pool: RenderPool, staged: Staged) -> None:
    document = staged(pdf(lines, blank))
    assert (await pool.open(document)).page_count == 2
    image = await pool.render(document, 1, dpi=100)
    try:
        assert (image.width, image.height, image.dpi) == (826, 1169, 100.0)
        pixels = pool.pixels(image)
        assert pixels.shape == (1169, 826, 1), "black on white has no colour"
        assert 0.005 < image.ink < 0.2
        upper, lower = PixelBox(0, 0, 826, 600), PixelBox(0, 600, 826, 1169)
        cuts = await pool.cut(image, [CutRequest(upper, Label.TEXT), CutRequest(lower, Label.TEXT)])
        assert [cut.ink > 0 for cut in cuts] == [True, False]
        crop = cuts[0].crops[0]
        assert simplejpeg.decode_jpeg_header(crop.jpeg)[:2] == (crop.height, crop.width) == (588, 840)
        assert (await pool.coverage(image, [upper])).missed == ()
        missed = (await pool.coverage(image, [lower])).missed
        assert len(missed) == 1
        assert missed[0].y1 < 600
        survey = await pool.survey(image, [CutRequest(lower, Label.TEXT)])
        assert survey.coverage.missed == missed
        assert list(survey.cuts) == cuts[1:]
        assert list(survey.missed) == await pool.cut(image, [CutRequest(missed[0], Label.TEXT)])
        with Image.open(io.BytesIO(await pool.figure(image, upper))) as figure:
            assert figure.size == (826, 600)
    finally:
        pool.release(image)
    pool.release(image)


@pytest.mark.parametrize("angle", [90, 180, 270])
async def test_a_turned_page_is_the_page_turned(pool: RenderPool, staged: Staged, angle: int) -> None:
    document = staged(pdf(lines))
    upright, turned = [await pool.render(document, 1, 72, angle) for angle in (0, angle)]
    expected = np.rot90(pool.pixels(upright), -angle // 90).mean(axis=2) < 128
    actual = pool.pixels(turned).mean(axis=2) < 128
    assert expected.shape == actual.shape
    assert turned.angle == angle
    overlap = (expected & actual).sum() / expected.sum()
    assert overlap > 0.5, "antialiasing differs, places do not"
    for image in (upright, turned):
        pool.release(image)


async def test_the_worker_loads_no_pdf_engine(tmp_path: Path) -> None:
    code = "import sys, handler.documents.pool; print(any(m in sys.modules for m in ('pymupdf', 'pypdfium2', 'cv2')))"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    output, _ = await process.communicate()
    assert output.strip() == b"False"


async def test_a_killed_process_costs_one_page(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    document = staged(pdf(lines))
    with RenderPool(Settings(render_processes=1)) as own:
        monkeypatch.setattr(remote, "draw_page", misbehaviour.die)
        with pytest.raises(RenderFailure) as caught:
            await own.render(document, 1, 72)
        assert caught.value.reason is Reason.KILLED_WORKER
        monkeypatch.undo()
        own.release(await own.render(document, 1, 72))


async def test_a_process_killed_while_cutting_costs_nothing(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    document = staged(pdf(lines))
    with RenderPool(Settings(render_processes=1)) as own:
        image = await own.render(document, 1, 72)
        monkeypatch.setattr(remote, "cut_regions", misbehaviour.die_first)
        [cut] = await own.cut(image, [CutRequest(PixelBox(0, 0, image.width, image.height), Label.TEXT)])
        assert cut.ink > 0
        own.release(image)


async def test_a_page_that_hangs_is_stopped(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    document = staged(pdf(lines))
    with RenderPool(Settings(render_processes=1, render_timeout_s=0.3)) as own:
        await own.open(document)
        monkeypatch.setattr(remote, "draw_page", misbehaviour.hang)
        with pytest.raises(RenderFailure) as caught:
            await own.render(document, 1, 72)
        assert caught.value.reason is Reason.RENDER_TIMEOUT
        monkeypatch.undo()
        assert (await own.open(document)).page_count == 1


async def test_a_page_that_floods_memory_is_stopped(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    document = staged(pdf(lines))
    with RenderPool(Settings(render_processes=1, render_memory_mb=256)) as own:
        monkeypatch.setattr(remote, "draw_page", misbehaviour.flood)
        with pytest.raises(RenderFailure) as caught:
            await own.render(document, 1, 72)
        assert caught.value.reason is Reason.RENDER_MEMORY


async def test_the_pool_heals_when_an_idle_process_is_killed(staged: Staged) -> None:
    document = staged(pdf(lines))
    with RenderPool(Settings(render_processes=1)) as own:
        await own.open(document)
        idle = await own._call(Task(Rank.OPEN), os.getpid)
        os.kill(idle, signal.SIGKILL)
        await asyncio.to_thread(survivors, processes(idle))
        for _ in range(50):
            if not own._pool or not own._pool.active:
                break
            await asyncio.sleep(0.02)
        assert (await own.open(document)).page_count == 1


@dataclass(frozen=True)
class Gate:
    """A drawing that waits, and where it tells that it has begun."""

    begun: Path
    opened: Path

    async def reached(self) -> None:
        """Wait until the drawing has begun."""
        await asyncio.to_thread(self.begun.read_bytes)

    async def open(self) -> None:
        """Let it end."""
        await asyncio.to_thread(self.opened.write_bytes, b"")


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Draws nothing until it is opened."""
    made = Gate(tmp_path / "begun", tmp_path / "opened")
    os.mkfifo(made.begun)
    os.mkfifo(made.opened)
    monkeypatch.setattr(remote, "draw_page", partial(misbehaviour.wait, made.begun, made.opened))
    return made


async def test_a_cancelled_drawing_ends_by_itself_and_takes_no_other_page_with_it(staged: Staged, gate: Gate) -> None:
    document = staged(pdf(lines))
    with RenderPool(Settings(render_processes=1)) as own:
        process = await own._call(Task(Rank.OPEN), os.getpid)
        drawing = asyncio.create_task(own.render(document, 1, 72))
        await gate.reached()
        drawing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drawing
        next_one = asyncio.create_task(own._call(Task(Rank.OPEN), os.getpid))
        done, _ = await asyncio.wait({next_one}, timeout=0.5)
        assert not done, "the process was stopped"
        await gate.open()
        assert await next_one == process


def pages_in_memory() -> int:
    """Memory files that this process has open."""
    links = (link for link in Path("/proc/self/fd").iterdir() if link.is_symlink())
    return sum("glmocr-page" in str(link.readlink()) for link in links)


async def test_the_memory_of_a_cancelled_drawing_goes_to_no_other_page(staged: Staged, gate: Gate) -> None:
    document = staged(pdf(lines))
    before = pages_in_memory()
    with RenderPool(Settings(render_processes=2)) as own:
        await own.open(document)
        drawing = asyncio.create_task(own.render(document, 1, 72))
        await gate.reached()
        drawing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await drawing
        assert pages_in_memory() == before + 1
        own._buffers.take()
        assert pages_in_memory() == before + 2
        await gate.open()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)
        assert pages_in_memory() == before + 1
    assert pages_in_memory() == before


async def test_a_drawing_cancelled_before_its_turn_never_begins(staged: Staged, gate: Gate) -> None:
    document = staged(pdf(lines))
    with RenderPool(Settings(render_processes=1)) as own:
        await own.open(document)
        drawing = asyncio.create_task(own.render(document, 1, 72))
        await gate.reached()
        waiting = asyncio.create_task(own.render(document, 1, 72))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert len(own._buffers) == 1
        await gate.open()
        with pytest.raises(RenderFailure):
            await drawing
        assert (await own.open(document)).page_count == 1


async def test_nothing_is_left_in_shared_memory(pool: RenderPool, staged: Staged) -> None:
    before = set(os.listdir("/dev/shm"))  # noqa: PTH208
    image = await pool.render(staged(pdf(lines)), 1, 72)
    assert set(os.listdir("/dev/shm")) == before  # noqa: PTH208
    pool.release(image)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"%PDF-1.4\nnothing else", DocumentKind.PDF),
        (pdf(lines)[:100], DocumentKind.PDF),
        (b"\x89PNG\r\n\x1a\nnothing else", DocumentKind.PNG),
        (b"II*\x00\xff\xff\xff\xff", DocumentKind.TIFF),
    ],
    ids=["a stump", "100 bytes", "only a signature", "no directory"],
)
async def test_what_no_engine_opens_is_unreadable(
    pool: RenderPool, staged: Staged, content: bytes, kind: DocumentKind
) -> None:
    with pytest.raises(DocumentUnreadable):
        await pool.open(staged(content, kind))


def encrypted(user: str, owner: str) -> bytes:
    from handler.documents.lean import pymupdf

    document = pymupdf.open(stream=pdf(lines), filetype="pdf")
    content: bytes = document.tobytes(encryption=pymupdf.PDF_ENCRYPT_AES_256, user_pw=user, owner_pw=owner)
    return content


async def test_passwords(pool: RenderPool, staged: Staged) -> None:
    locked = encrypted("user", "owner")
    with pytest.raises(PasswordRequired):
        await pool.open(staged(locked))
    with pytest.raises(PasswordWrong):
        await pool.open(staged(locked, password="guess"))
    for password in ("user", "owner"):
        document = staged(locked, password=password)
        assert (await pool.open(document)).page_count == 1
        image = await pool.render(document, 1, 72)
        assert image.ink > 0
        pool.release(image)
    assert (await pool.open(staged(encrypted("", "owner")))).page_count == 1
