"""Many files: each settled once, whatever interrupts; the manifest and the report say what became of them."""

import csv
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from glmocr_runpod import Client
from glmocr_runpod.batch import MANIFEST, BatchItem, stems
from glmocr_runpod.errors import Closed, ConfigError, Denied, OutputError
from glmocr_runpod.report import write_report

from emulator.faults import Fault, FaultKind
from emulator.jobs import Job
from handler.schema import ErrorCode, ErrorInfo
from tests.client.rig import Rig, read


async def mostly(job: Job) -> dict[str, object]:
    if b"bad" in job.input["filename"].encode():
        error = ErrorInfo(code=ErrorCode.DOCUMENT_UNREADABLE, message="No engine can open it", retryable=False)
        return {"error": error.model_dump_json()}
    return await read(job)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "in" / name for name in ("a.pdf", "bad.pdf", "c.pdf", "empty.pdf", "e.pdf")]
    paths[0].parent.mkdir()
    for path in paths:
        path.write_bytes(b"" if path.name == "empty.pdf" else b"%PDF-1.7 " + path.name.encode())
    return paths


def test_a_batch_and_its_repetition(rig: Rig, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    with Client(config=rig.config) as client, rig.worker(mostly):
        first = client.parse_many(files, out)
        second = client.parse_many(files, out)
    assert [item.status for item in first] == ["partial", "error", "partial", "error", "partial"]
    assert [item.code for item in first if not item.ok] == ["document_unreadable", "source"]
    assert [item.reused for item in second] == [True, False, True, False, True]
    assert sorted(path.name for path in out.glob("*.json")) == ["a.json", "c.json", "e.json"]
    assert len(rig.jobs()) == 4


def test_a_file_that_changed_is_read_anew(rig: Rig, files: list[Path], tmp_path: Path) -> None:
    with Client(config=rig.config) as client, rig.worker(mostly):
        client.parse_many(files[:1], tmp_path / "out")
        files[0].write_bytes(b"%PDF-1.7 changed")
        (item,) = client.parse_many(files[:1], tmp_path / "out")
    assert not item.reused
    assert len(rig.jobs()) == 2


def test_a_torn_manifest_costs_nothing(rig: Rig, files: list[Path], tmp_path: Path) -> None:
    manifest = tmp_path / "out" / MANIFEST
    with Client(config=rig.config) as client, rig.worker(mostly):
        client.parse_many(files, tmp_path / "out")
        manifest.write_bytes(manifest.read_bytes()[:-20])
        again = client.parse_many(files, tmp_path / "out")
        third = client.parse_many(files, tmp_path / "out")
    assert [item.ok for item in again] == [True, False, True, False, True]
    assert all(item.reused for item in third if item.ok)
    assert len(rig.jobs()) == 4


def test_a_file_that_comes_later_takes_no_others_place(rig: Rig, tmp_path: Path) -> None:
    late, early = tmp_path / "a" / "x.pdf", tmp_path / "b" / "x.pdf"
    for path in (late, early):
        path.parent.mkdir()
        path.write_bytes(b"%PDF-1.7 " + path.parent.name.encode())
    with Client(config=rig.config) as client, rig.worker():
        client.parse_many([early], tmp_path / "out")
        before = (tmp_path / "out" / "x.json").read_bytes()
        items = client.parse_many([late, early], tmp_path / "out")
    assert (tmp_path / "out" / "x.json").read_bytes() == before
    assert [item.reused for item in items] == [False, True]
    assert len({item.stem for item in items}) == 2
    assert all((tmp_path / "out" / f"{item.stem}.json").exists() for item in items)


def test_what_cannot_be_written_ends_the_batch_and_stays_paid(rig: Rig, files: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.md").mkdir()
    with Client(config=rig.config) as client, rig.worker(mostly):
        with pytest.raises(OutputError, match=r"a\.md"):
            client.parse_many(files, out, concurrency=1)
        (out / "a.md").rmdir()
        client.parse_many(files[:1], out)
    assert len(rig.jobs()) == 1


def test_a_batch_that_is_broken_off_leaves_the_client_usable(rig: Rig, files: list[Path], tmp_path: Path) -> None:
    def broken(item: BatchItem) -> None:
        raise KeyboardInterrupt if item.ok else ValueError

    with Client(config=rig.config) as client, rig.worker(mostly):
        with pytest.raises((KeyboardInterrupt, ValueError)):
            client.parse_many(files, tmp_path / "out", done=broken)
        assert client.parse(files[0]).pages
        assert len(client.parse_many(files, tmp_path / "out")) == len(files)
    assert len(rig.jobs()) == 4


def test_closing_ends_what_runs_side_by_side(rig: Rig, files: list[Path], tmp_path: Path) -> None:
    client = Client(config=rig.config)
    with ThreadPoolExecutor(1) as pool:
        batch = pool.submit(client.parse_many, files[:1], tmp_path / "out")
        while not rig.jobs():
            time.sleep(0.02)
        client.stop()
        with pytest.raises(Closed):
            batch.result(10)
    client.close()


def test_an_error_of_all_ends_the_batch(rig: Rig, files: list[Path], tmp_path: Path) -> None:
    rig.do(lambda: rig.emulator.faults.add(Fault(FaultKind.STATUS, "run", status=401)))
    with Client(config=rig.config) as client, pytest.raises(Denied):
        client.parse_many(files, tmp_path / "out", concurrency=1)
    assert rig.do(lambda: rig.emulator.requests["run"]) == 1


def test_names_that_would_be_the_same() -> None:
    names = stems([Path("a/x.pdf"), Path("b/x.pdf"), Path("b/X.png"), Path("y.pdf")])
    assert names[Path("a/x.pdf")] == "x"
    assert len({name.casefold() for name in names.values()}) == 4
    assert names == stems(list(names))
    long = [Path("a") / ("n" * 250 + ".pdf"), Path("b") / ("n" * 250 + ".pdf")]
    assert len(set(stems(long).values())) == 2
    assert all(len(stem) <= 200 for stem in stems(long).values())


def item(path: str, **more: object) -> BatchItem:
    return BatchItem(path=path, content_key="k", status="complete", stem="s", **more)  # type: ignore[arg-type]


def test_the_report_has_failures_first_and_runs_nothing(tmp_path: Path) -> None:
    items = [item("a.pdf"), item("=cmd()|x.pdf", seconds=1.25), item("<b>.pdf")]
    items.append(BatchItem(path="z", content_key="", status="error", stem="z", code="lost", message="gone & lost"))
    write_report(items, tmp_path / "report.csv")
    with (tmp_path / "report.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert [row[0] for row in rows] == ["file", "z", "<b>.pdf", "'=cmd()|x.pdf", "a.pdf"]
    assert rows[1][-2:] == ["lost", "gone & lost"]
    write_report(items, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;.pdf" in page
    assert "gone &amp; lost" in page
    with pytest.raises(ConfigError, match=r"\.csv or \.html"):
        write_report(items, tmp_path / "report.txt")
