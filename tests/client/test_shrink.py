"""Ghostscript: accepted only when the pages still show the same; the input is kept in every other case."""

import io
import re
import shutil
import textwrap
from pathlib import Path

import pytest
from glmocr_runpod import pdf
from glmocr_runpod.shrink import Shrunk, arguments, shrink
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

from tests.client import scans
from tests.support.survivors import processes, survivors

GS = shutil.which("gs")
real = pytest.mark.skipif(GS is None, reason="Ghostscript is not installed: apt-get install ghostscript")


@pytest.fixture(scope="module")
def page() -> bytes:
    """One scanned page at 220 DPI, about 2.5 MB."""
    return scans.scan(220, [1], grain=20, quality=85)


@pytest.fixture
def fake(tmp_path: Path) -> "Fake":
    return Fake(tmp_path / "gs")


class Fake:
    """A Ghostscript that does what a test says: a Python body that knows `target`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, body: str) -> str:
        script = """\
            #!/usr/bin/python3
            import sys, time, subprocess
            if "--version" in sys.argv:
                sys.exit(print("10.02.1"))
            target = next(a for a in sys.argv if a.startswith("-sOutputFile=")).partition("=")[2]
            """
        self._path.write_text(textwrap.dedent(script) + textwrap.dedent(body))
        self._path.chmod(0o755)
        return str(self._path)


def kept(result: Shrunk, data: bytes, said: str) -> None:
    assert result.dpi is None
    assert result.data is data
    assert said in result.reason


@real
def test_150_dpi_when_that_suffices(page: bytes) -> None:
    assert GS
    result = shrink(page, len(page) // 2, GS)
    assert result.dpi == 150
    assert len(result.data) <= len(page) // 2
    assert pdf.same(pdf.looks(page)[0], pdf.looks(result.data)[0]) is None


@real
def test_100_dpi_then_and_never_less(page: bytes) -> None:
    assert GS
    at_150 = len(shrink(page, len(page) - 1, GS).data)
    result = shrink(page, at_150 - 1, GS)
    assert result.dpi == 100
    kept(shrink(page, len(result.data) - 1, GS), page, "still")


@real
def test_the_same_page_gives_the_same_bytes_at_any_time(page: bytes) -> None:
    assert GS
    first, again = (shrink(page, len(page) // 2, GS).data for _ in range(2))
    assert first == again
    assert not re.search(rb"/(Creation|Mod)Date|/ID\s*\[|<x:xmpmeta", first)


@real
def test_a_sideways_page_stays_sideways() -> None:
    assert GS
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=scans.A4, invariant=1)
    canvas.drawInlineImage(scans.page_image(220, 1, grain=25), 0, 0, *scans.A4)
    canvas.rotate(90)
    for row in range(60):
        canvas.drawString(20, -20 - row * 9, "written up the page, as on a drawing " * 3)
    canvas.showPage()
    canvas.save()
    data = written.getvalue()
    result = shrink(data, len(data) // 2, GS)
    assert result.dpi is not None
    assert pdf.looks(result.data)[0].rotation == 0


def test_already_small(page: bytes, fake: Fake) -> None:
    kept(shrink(page, len(page), fake("sys.exit(1)")), page, "already small")


def test_bilevel(fake: Fake) -> None:
    data = scans.bilevel(200)
    kept(shrink(data, 10_000, fake("sys.exit(1)")), data, "bilevel")


def test_encrypted(fake: Fake) -> None:
    written = io.BytesIO()
    canvas = Canvas(written, encrypt=StandardEncryption("secret"))
    canvas.drawString(100, 100, "hidden")
    canvas.save()
    kept(shrink(written.getvalue(), 10, fake("sys.exit(1)")), written.getvalue(), "cannot be opened")


@pytest.mark.parametrize("cut", [100, 0.5])
def test_corrupt(page: bytes, cut: float) -> None:
    data = page[: int(len(page) * cut) if cut < 1 else int(cut)]
    result = shrink(data, 10, GS or "/bin/false")
    assert result.data is data


def test_a_version_that_damages_pictures_is_not_used(page: bytes, tmp_path: Path) -> None:
    program = tmp_path / "gs"
    program.write_text("#!/bin/sh\necho 10.06.0 | sed s/06/6/\n")
    program.chmod(0o755)
    kept(shrink(page, 1000, str(program)), page, "damages pictures")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("sys.exit(1)", "ended with 1"),
        ("pass", "wrote nothing"),
        ("open(target, 'wb').write(b'%PDF-1.4 stub')", "cannot be all of it"),
        ("open(target, 'wb').write(b'%PDF-1.4' + b'x' * 60000)", "cannot be opened any more"),
        ("open(target, 'wb').write(open(sys.argv[-1], 'rb').read())", "no gain"),
    ],
)
def test_nonsense_is_not_accepted(page: bytes, fake: Fake, body: str, said: str) -> None:
    kept(shrink(page, 1000, fake(body)), page, said)


def _other(kind: str) -> bytes:
    if kind == "blank":
        return _blank()
    if kind == "two pages":
        return scans.scan(70, [1, 2], grain=20)
    return scans.scan(90, [1], grain=20, turn=90) if kind == "turned" else scans.scan(90, [1], grain=20, half=True)


def _blank() -> bytes:
    written = io.BytesIO()
    canvas = Canvas(written, pagesize=scans.A4, pageCompression=0, invariant=1)
    canvas.drawString(1, 1, " " * 60_000)
    canvas.showPage()
    canvas.save()
    return written.getvalue()


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("blank", "ink is gone"),
        ("two pages", "2 pages instead of 1"),
        ("turned", "turned by 90"),
        ("half", "ink differs"),
    ],
)
def test_a_page_that_shows_something_else_is_not_accepted(
    page: bytes, fake: Fake, tmp_path: Path, kind: str, said: str
) -> None:
    output = tmp_path / "other.pdf"
    output.write_bytes(_other(kind))
    kept(shrink(page, len(page) - 1, fake(f"open(target, 'wb').write(open({str(output)!r}, 'rb').read())")), page, said)


def test_a_hang_ends_with_everything_it_started(page: bytes, fake: Fake, tmp_path: Path) -> None:
    told = tmp_path / "child"
    body = f"""
        child = subprocess.Popen(["sleep", "600"])
        open({str(told)!r}, "w").write(str(child.pid))
        time.sleep(600)
    """
    kept(shrink(page, 1000, fake(body), timeout_s=6), page, "more than 6 s")
    assert survivors(processes(int(told.read_text()))) == []


def test_the_command_line_is_safe() -> None:
    line = arguments("gs", 150, "/ebook", Path("/t/in.pdf"), Path("/t/out.pdf"))
    assert line[-2:] == ["-f", "/t/in.pdf"]
    assert {"-dSAFER", "-dBATCH", "-dNOPAUSE", "-dPDFSTOPONERROR", "-dAutoRotatePages=/None"} <= set(line)
