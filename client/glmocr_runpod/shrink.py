"""Ghostscript, never trusted: a page that is over the limit at a lower resolution, or the page as it was.

Exit 0 proves nothing (a stub, a blank page, a missing page all end so), so its output is compared with the input by
PDFium. The only module that starts a process.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from glmocr_runpod import pdf

TIMEOUT_S = 180.0
SMALLEST_BYTES = 50_000
"""A result below this is suspect: a stub is about 2.5 KB, and nothing that was over 7 MB becomes so small and whole."""
SMALLEST_GAIN = 0.1
LADDER = ((150, "/ebook"), (100, "/screen"))
"""Resolution and preset. Never 72 DPI: word match falls from 93 % to 45 %."""
BROKEN_VERSIONS = ("10.6.",)
"""Cut 1 to 15 bytes off JPEGs they pass through."""


@dataclass(frozen=True, slots=True)
class Shrunk:
    """What came of it. `data` is the input itself unless a resolution is named."""

    data: bytes = field(repr=False)
    dpi: int | None
    reason: str
    """Why the input was kept, or how much was saved."""


def ghostscript() -> str | None:
    """Where `gs` is, if it is."""
    return shutil.which("gs")


def version(program: str) -> str:
    """As `gs --version` says it; empty when it says nothing."""
    try:
        ended = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.strip()


def shrink(data: bytes, limit: int, program: str, timeout_s: float = TIMEOUT_S) -> Shrunk:
    """The PDF in at most `limit` bytes, or as it was with the reason."""
    refused = _unfit(data, limit, program)
    if refused:
        return Shrunk(data, None, refused)
    reason = ""
    for dpi, preset in LADDER:
        result = rewrite(data, program, dpi, preset, timeout_s)
        if isinstance(result, str):
            reason = result
            continue
        reason = _doubt(data, result) or ""
        if reason:
            reason = f"at {dpi} DPI {reason}"
        elif len(result) > limit:
            reason = f"still {len(result)} bytes at {dpi} DPI"
        else:
            return Shrunk(result, dpi, f"{len(data)} -> {len(result)} bytes")
    return Shrunk(data, None, reason)


def arguments(program: str, dpi: int, preset: str, source: Path, target: Path) -> list[str]:
    """The command line. `-f` ends the options, so no option can stand after the file."""
    resolution = [
        option
        for kind in ("Color", "Gray")
        for option in (
            f"-dDownsample{kind}Images=true",
            f"-d{kind}ImageResolution={dpi}",
            f"-d{kind}ImageDownsampleType=/Bicubic",
            f"-d{kind}ImageDownsampleThreshold=1.0",
            # Left to choose, it stores some pages without loss and makes 100 DPI larger than 150.
            f"-dAutoFilter{kind}Images=false",
            f"-d{kind}ImageFilter=/DCTEncode",
        )
    ]
    return [
        program,
        "-q",
        "-dSAFER",
        "-dBATCH",
        "-dNOPAUSE",
        "-dPDFSTOPONERROR",
        "-sDEVICE=pdfwrite",
        f"-dPDFSETTINGS={preset}",
        "-dAutoRotatePages=/None",
        "-dPassThroughJPEGImages=false",
        "-dDownsampleMonoImages=false",
        # The same page gives the same bytes each time, by which a worker knows what it has already read.
        "-dOmitInfoDate=true",
        "-dOmitID=true",
        "-dOmitXMP=true",
        *resolution,
        f"-sOutputFile={target}",
        "-f",
        str(source),
    ]


def _unfit(data: bytes, limit: int, program: str) -> str | None:
    if len(data) <= limit:
        return "already small enough"
    found = version(program)
    if found.startswith(BROKEN_VERSIONS):
        return f"Ghostscript {found} damages pictures; 10.07 is repaired"
    try:
        pages = pdf.count_pages(data)
        if pages == 0:
            return "it has no page"
        if pdf.is_bilevel(data):
            return "it is bilevel and would only grow"
    except pdf.PdfError as error:
        return f"it cannot be opened: {error}"
    return None


def rewrite(data: bytes, program: str, dpi: int, preset: str, timeout_s: float) -> bytes | str:
    """What Ghostscript wrote, not yet judged, or what went wrong."""
    with tempfile.TemporaryDirectory(prefix="glmocr-shrink-") as folder:
        source, target = Path(folder, "in.pdf"), Path(folder, "out.pdf")
        source.write_bytes(data)
        command = arguments(program, dpi, preset, source, target)
        environment = {"PATH": os.defpath, "TMPDIR": folder, "HOME": folder}
        # A session of its own, so that whatever it starts can be ended with it.
        process = subprocess.Popen(  # noqa: S603
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return f"Ghostscript took more than {timeout_s:g} s"
        finally:
            _end(process)
        if process.returncode != 0:
            return f"Ghostscript ended with {process.returncode}: {said[-200:].decode(errors='replace').strip()}"
        return target.read_bytes() if target.exists() else "Ghostscript wrote nothing"


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole group, whether it ended by itself or not: a child it left behind holds the pipe."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()
        if process.stdout:
            process.stdout.close()


def _doubt(before: bytes, after: bytes) -> str | None:
    """Why the output is not accepted; None when every page shows the same."""
    if len(after) < SMALLEST_BYTES:
        return f"it became {len(after)} bytes, which cannot be all of it"
    if len(after) > len(before) * (1 - SMALLEST_GAIN):
        return f"it became {len(after)} bytes, which is no gain"
    try:
        old, new = pdf.looks(before), pdf.looks(after)
    except pdf.PdfError as error:
        return f"it cannot be opened any more: {error}"
    if len(old) != len(new):
        return f"it has {len(new)} pages instead of {len(old)}"
    for number, (was, now) in enumerate(zip(old, new, strict=True), 1):
        change = pdf.same(was, now)
        if change:
            return f"page {number} changed: {change}"
    return None
