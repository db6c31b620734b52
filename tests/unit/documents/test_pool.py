"""The render processes: real ones, with real documents, killed and hung on purpose."""

import asyncio
import io
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from handler.documents import remote
from handler.documents.failures import RenderFailure
from handler.documents.page import CutRequest
from handler.documents.pool import RenderPool
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
        idle = await own._call(Rank.OPEN, None, os.getpid)
        os.kill(idle, signal.SIGKILL)
        await asyncio.to_thread(survivors, processes(idle))
        for _ in range(50):
            if not own._pool or not own._pool.active:
                break
            await asyncio.sleep(0.02)
        assert (await own.open(document)).page_count == 1


async def test_a_cancelled_call_is_forgotten_with_its_memory(staged: Staged, monkeypatch: pytest.MonkeyPatch) -> None:
    document = staged(pdf(lines))
    with RenderPool(Settings(render_processes=1)) as own:
        await own.open(document)
        before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        monkeypatch.setattr(remote, "draw_page", misbehaviour.hang)
        task = asyncio.create_task(own.render(document, 1, 72))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        monkeypatch.undo()
        assert (await own.open(document)).page_count == 1
        assert len(own._buffers) == 0
        assert len(os.listdir("/proc/self/fd")) <= before + 1  # noqa: PTH208


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
