"""A 39 MB, 60-page scan goes through without loss by dividing it; the same as one page by Ghostscript."""

import sys
from pathlib import Path

import pytest
from glmocr_runpod import Client
from glmocr_runpod.shrink import ghostscript

from tests.client import scans
from tests.client.reading import Reading, page_texts, streams
from tests.client.rig import emulated

SIZE = 39_000_000
PAGES = 60


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_sixty_pages(tmp_path: Path) -> None:
    scan = scans.scan(113, range(1, PAGES + 1), grain=18)
    assert len(scan) == pytest.approx(SIZE, rel=0.1)
    reading = Reading()
    with emulated(tmp_path / "state") as rig, rig.worker(reading), Client(config=rig.config) as client:
        document = client.parse(scan, name="scan.pdf")
        bodies = [len(str(job.body)) for job in rig.jobs()]
    assert [page.page for page in document.pages] == list(range(1, PAGES + 1))
    assert [page.regions[0].text for page in document.pages] == [f"page {n}" for n in range(1, PAGES + 1)]
    parts = sorted(reading.sent, key=lambda part: int(page_texts(part)[0].split()[1]))
    assert [stream for part in parts for stream in streams(part)] == streams(scan)
    assert max(bodies) < 10_000_000
    sys.stderr.write(f"\n{len(scan)} bytes, {PAGES} pages -> {len(parts)} jobs, every picture byte for byte\n")


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.skipif(ghostscript() is None, reason="Ghostscript is not installed: apt-get install ghostscript")
def test_one_page(tmp_path: Path) -> None:
    scan = scans.scan(600, [1], grain=30, quality=98)
    assert len(scan) == pytest.approx(SIZE, rel=0.1)
    reading = Reading()
    with emulated(tmp_path / "state") as rig, rig.worker(reading), Client(config=rig.config) as client:
        document = client.parse(scan, name="page.pdf")
    assert len(reading.sent) == 1
    (step,) = [step for step in document.transport if step["step"] == "ghostscript"]
    assert step["facts"]["dpi"] >= 150
    assert len(document.pages) == 1
    sys.stderr.write(f"\n{len(scan)} bytes, one page -> {step['detail']}\n")
