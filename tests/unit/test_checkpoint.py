import gzip
import os
from pathlib import Path

import pytest

from handler.checkpoint import ATTEMPT_STALE_S, Checkpoints, NoCheckpoint, VolumeCheckpoint, read_page, write_page
from handler.page_outcome import Figure, PageOutcome
from handler.schema import PageResult, PageStatus, Usage


def outcome(page: int) -> PageOutcome:
    result = PageResult(page=page, status=PageStatus.OK, width=3, height=4)
    figure = Figure(f"figures/page-{page}.jpg", page, 0, b"\xff\x00jpeg")
    return PageOutcome(result, Usage(requests=2, prompt_tokens=9), (figure,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "key" / "pipeline"


async def test_a_finished_page_is_there_for_the_next_attempt(folder: Path) -> None:
    first = VolumeCheckpoint(folder, "job")
    assert (await first.open()).done == {}
    await first.begin(3, alone=False)
    await first.keep(3, outcome(3))
    await first.close()
    history = await VolumeCheckpoint(folder, "other").open()
    assert history.done == {3: outcome(3)}
    assert history.deaths == 0


async def test_a_death_is_counted_when_the_same_job_comes_again(folder: Path) -> None:
    dead = VolumeCheckpoint(folder, "job")
    await dead.open()
    await dead.begin(1, alone=False)
    history = await VolumeCheckpoint(folder, "job").open()
    assert (history.deaths, history.suspects, history.killers) == (1, frozenset(), frozenset())


async def test_an_attempt_of_another_job_is_alive_until_it_is_silent(folder: Path) -> None:
    running = VolumeCheckpoint(folder, "other")
    await running.open()
    assert (await VolumeCheckpoint(folder, "job").open()).deaths == 0
    for path in (folder / "attempts").glob("*.attempt"):
        os.utime(path, (path.stat().st_mtime - ATTEMPT_STALE_S - 1,) * 2)
    assert (await VolumeCheckpoint(folder, "third").open()).deaths == 2


async def test_what_two_dead_attempts_were_reading_is_suspect_and_alone_it_is_the_killer(folder: Path) -> None:
    for pages in ((1, 2), (2, 3)):
        dead = VolumeCheckpoint(folder, "job")
        await dead.open()
        for page in pages:
            await dead.begin(page, alone=False)
    third = VolumeCheckpoint(folder, "job")
    history = await third.open()
    assert (history.deaths, history.suspects) == (2, frozenset({2}))
    await third.begin(2, alone=True)
    history = await VolumeCheckpoint(folder, "job").open()
    assert (history.killers, history.suspects) == (frozenset({2}), frozenset())


async def test_a_page_that_was_finished_is_no_suspect(folder: Path) -> None:
    for _ in range(2):
        dead = VolumeCheckpoint(folder, "job")
        await dead.open()
        await dead.begin(1, alone=False)
    done = VolumeCheckpoint(folder, "job")
    await done.open()
    await done.keep(1, outcome(1))
    history = await VolumeCheckpoint(folder, "job").open()
    assert (set(history.done), history.suspects) == ({1}, frozenset())


@pytest.mark.parametrize(
    "data", [b"", b"not gzip", gzip.compress(b"{}", mtime=0), gzip.compress(b"[1", mtime=0), b"\x1f\x8b\x08"]
)
def test_a_broken_file_is_read_again_never_trusted(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "page-00001.json.gz"
    path.write_bytes(data)
    assert read_page(path) is None
    write_page(path, outcome(1))
    assert read_page(path) == outcome(1)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


async def test_a_volume_that_cannot_be_written_never_costs_the_job(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where a folder should be")
    checkpoint = VolumeCheckpoint(blocked / "key", "job")
    assert (await checkpoint.open()).done == {}
    await checkpoint.begin(1, alone=False)
    await checkpoint.keep(1, outcome(1))
    await checkpoint.close()


async def test_two_workers_on_one_document_do_not_harm_each_other(folder: Path) -> None:
    a, b = VolumeCheckpoint(folder, "a"), VolumeCheckpoint(folder, "b")
    await a.open()
    await b.open()
    for checkpoint in (a, b):
        await checkpoint.begin(1, alone=False)
        await checkpoint.keep(1, outcome(1))
    await a.close()
    await b.begin(2, alone=False)
    await b.keep(2, outcome(2))
    await b.close()
    assert (await VolumeCheckpoint(folder, "c").open()).done == {1: outcome(1), 2: outcome(2)}


def test_without_a_volume_or_a_wish_nothing_is_written(tmp_path: Path) -> None:
    assert isinstance(Checkpoints(None, "p").of("key", "job", wanted=True), NoCheckpoint)
    assert isinstance(Checkpoints(tmp_path, "p").of("key", "job", wanted=False), NoCheckpoint)
    assert list(tmp_path.iterdir()) == []
