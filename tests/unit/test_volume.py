import asyncio
import logging
import os
import threading
from pathlib import Path

import pytest

from handler import volume
from handler.settings import Settings
from handler.volume import Housekeeper, Volume, expire, mounted


def entry(folder: Path, name: str, *, age: float, size: int = 10) -> Path:
    path = folder / name / "page.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * size)
    for touched in (path, path.parent):
        os.utime(touched, (1_000_000 - age, 1_000_000 - age))
    return path.parent


def test_nothing_mounted_is_no_volume(tmp_path: Path) -> None:
    assert mounted(tmp_path / "none") is None
    assert mounted(tmp_path) == Volume(tmp_path)


def test_old_entries_go(tmp_path: Path) -> None:
    old, young = entry(tmp_path, "old", age=100), entry(tmp_path, "young", age=10)
    assert expire(tmp_path, max_age_s=50, max_bytes=10**9, now=1_000_000) == 1
    assert not old.exists()
    assert young.exists()


def test_a_document_being_read_is_young(tmp_path: Path) -> None:
    kept = entry(tmp_path, "old", age=100)
    fresh = kept / "page-2.json"
    fresh.write_text("new")
    os.utime(fresh, (1_000_000, 1_000_000))
    assert expire(tmp_path, max_age_s=50, max_bytes=10**9, now=1_000_000) == 0


def test_the_oldest_go_until_the_size_holds(tmp_path: Path) -> None:
    entries = [entry(tmp_path, f"e{age}", age=age, size=100_000) for age in (30, 20, 10)]
    assert expire(tmp_path, max_age_s=1000, max_bytes=250_000, now=1_000_000) == 1
    assert [e.exists() for e in entries] == [False, True, True]


def test_never_reaches_outside(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", entry(tmp_path, "theirs", age=10**6)
    ours.mkdir()
    (ours / "link").symlink_to(theirs, target_is_directory=True)
    os.utime(ours / "link", (0, 0), follow_symlinks=False)
    assert expire(ours, max_age_s=1, max_bytes=10**9, now=1_000_000) == 1
    assert not (ours / "link").is_symlink()
    assert (theirs / "page.json").exists()


def test_a_linked_folder_is_not_expired(tmp_path: Path) -> None:
    entry(tmp_path, "real/e", age=10**6)
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    assert expire(tmp_path / "link", max_age_s=1, max_bytes=0, now=1_000_000) == 0
    assert expire(tmp_path / "absent", max_age_s=1, max_bytes=0, now=1_000_000) == 0


def test_breaks_off_when_the_worker_leaves(tmp_path: Path) -> None:
    kept = entry(tmp_path, "old", age=100)
    leaving = threading.Event()
    leaving.set()
    assert expire(tmp_path, max_age_s=1, max_bytes=0, now=1_000_000, leaving=leaving) == 0
    assert kept.exists()


async def test_no_job_waits_for_the_housekeeper_or_fails_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go = threading.Event(), threading.Event()

    def stuck(*args: object, **kwargs: object) -> int:
        begun.set()
        go.wait(10)
        raise OSError("stale file handle")

    monkeypatch.setattr(volume, "expire", stuck)
    housekeeper = Housekeeper(Volume(tmp_path), Settings())
    housekeeper.tidy()
    assert await asyncio.to_thread(begun.wait, 10)
    housekeeper.tidy()
    go.set()
    assert housekeeper._tidying is not None
    with caplog.at_level(logging.WARNING):
        await housekeeper._tidying
    assert "could not be tidied: stale file handle" in caplog.text
