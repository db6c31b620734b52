import asyncio
import errno
import gzip
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from handler.attempts import STALE_S, Ending
from handler.checkpoint import (
    ANSWERS_INTERVAL_S,
    Checkpoints,
    History,
    NoCheckpoint,
    VolumeCheckpoint,
    read_page,
    write_page,
)
from handler.company import Care
from handler.engine.api import EngineRequest
from handler.page_outcome import Figure, PageOutcome, failed_page
from handler.recognition.reading import Answer
from handler.schema import PageResult, PageStatus, Reason, Usage

REQUEST = EngineRequest("Text Recognition:", b"jpeg", 100)
ANSWER = Answer("text", "stop", requests=1)


def outcome(page: int) -> PageOutcome:
    result = PageResult(page=page, status=PageStatus.OK, width=3, height=4)
    figure = Figure(f"figures/page-{page}.jpg", page, 0, b"\xff\x00jpeg")
    return PageOutcome(result, Usage(requests=2, prompt_tokens=9), (figure,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "key" / "pipeline"


async def die(folder: Path, *pages: int, care: Care = Care.TOGETHER, job: str = "job") -> None:
    """An attempt whose worker goes away while it reads these pages."""
    dead = VolumeCheckpoint(folder, job)
    await dead.open()
    for page in pages:
        await dead.begin(page, care)


async def history_of(folder: Path, job: str = "job") -> History:
    """What an attempt of this job finds; it is not counted."""
    checkpoint = VolumeCheckpoint(folder, job)
    history = await checkpoint.open()
    await checkpoint.close(Ending.LEFT)
    return history


async def test_a_finished_page_is_there_for_the_next_attempt(folder: Path) -> None:
    first = VolumeCheckpoint(folder, "job")
    assert (await first.open()).done == {}
    await first.begin(3, Care.TOGETHER)
    await first.end(3, outcome(3))
    await first.close(Ending.DONE)
    assert list((folder / "attempts").iterdir()) == []
    history = await history_of(folder, "other")
    assert history.done == {3: outcome(3)}
    assert history.deaths == 0


async def test_a_death_is_counted_when_the_same_job_comes_again(folder: Path) -> None:
    await die(folder, 1)
    assert await history_of(folder) == History(deaths=1)


async def test_an_attempt_of_another_job_is_alive_until_it_is_silent(folder: Path) -> None:
    await die(folder, 1, job="other")
    assert (await history_of(folder)).deaths == 0
    for path in (folder / "attempts").iterdir():
        os.utime(path, (path.stat().st_mtime - STALE_S - 1,) * 2)
    assert (await history_of(folder, "third")).deaths == 1


async def test_a_lost_engine_counts_as_a_death_for_every_job(folder: Path) -> None:
    for job in ("one", "two"):
        lost = VolumeCheckpoint(folder, job)
        await lost.open()
        await lost.begin(1, Care.TOGETHER)
        await lost.close(Ending.ENGINE_LOST)
    assert await history_of(folder, "three") == History(deaths=2, care={1: Care.SINGLED_OUT})


async def test_a_page_is_a_killer_after_two_deaths_with_nothing_else_in_the_worker(folder: Path) -> None:
    await die(folder, 1, 2, 4)
    await die(folder, 2, 3, 4)
    assert await history_of(folder) == History(deaths=2, care={2: Care.SINGLED_OUT, 4: Care.SINGLED_OUT})
    await die(folder, 2, care=Care.SINGLED_OUT)
    for _ in range(2):
        history = await history_of(folder)
        assert (history.care, history.killers) == ({2: Care.ALONE, 4: Care.SINGLED_OUT}, frozenset())
        await die(folder, 2, care=Care.ALONE)
    history = await history_of(folder)
    assert (history.care, history.killers) == ({4: Care.SINGLED_OUT}, frozenset({2}))


async def test_a_worker_that_was_told_to_stop_blames_no_page_though_it_is_killed_then(folder: Path) -> None:
    checkpoints = Checkpoints(folder, "p")
    for _ in range(2):
        checkpoint = checkpoints.of("key", "job", wanted=True)
        await checkpoint.open()
        await checkpoint.begin(1, Care.ALONE)
        await checkpoints.leave()
    history = await checkpoints.of("key", "job", wanted=True).open()
    assert history == History()


async def test_a_page_that_was_finished_is_no_suspect(folder: Path) -> None:
    await die(folder, 1)
    await die(folder, 1)
    done = VolumeCheckpoint(folder, "job")
    await done.open()
    await done.end(1, outcome(1))
    history = await history_of(folder)
    assert (set(history.done), history.care) == ({1}, {})


async def test_answers_outlive_their_worker_and_each_is_given_once(folder: Path) -> None:
    dead = VolumeCheckpoint(folder, "job")
    await dead.open()
    for said in ("", "text \ud7ff \x00"):
        dead.remember(REQUEST, Answer(said, "stop", requests=1))
    assert dead.recall(REQUEST) is None, "an attempt does not answer itself"
    await asyncio.sleep(2 * ANSWERS_INTERVAL_S)
    again = VolumeCheckpoint(folder, "job")
    await again.open()
    assert [again.recall(REQUEST) for _ in range(3)] == [
        Answer("", "stop", requests=1),
        Answer("text \ud7ff \x00", "stop", requests=1),
        None,
    ]
    assert again.recall(replace(REQUEST, max_tokens=2)) is None


async def test_answers_are_kept_while_a_page_lacks_and_gone_when_all_are_stored(folder: Path) -> None:
    first = VolumeCheckpoint(folder, "job")
    await first.open()
    await first.begin(1, Care.TOGETHER)
    first.remember(REQUEST, ANSWER)
    await first.end(1, failed_page(1, Reason.ENGINE_TIMEOUT, "no answer"))
    await first.close(Ending.DONE)
    second = VolumeCheckpoint(folder, "other")
    assert await second.open() == History()
    assert second.recall(REQUEST) == ANSWER
    await second.begin(1, Care.TOGETHER)
    await second.end(1, outcome(1))
    await second.close(Ending.DONE)
    assert list((folder / "attempts").iterdir()) == []


async def test_what_killed_is_remembered_when_the_rest_is_done(folder: Path) -> None:
    for _ in range(2):
        await die(folder, 2, care=Care.ALONE)
    done = VolumeCheckpoint(folder, "job")
    await done.open()
    await done.begin(1, Care.TOGETHER)
    await done.end(1, outcome(1))
    await done.close(Ending.DONE)
    assert (await history_of(folder, "later")).killers == frozenset()
    assert (await history_of(folder, "job")).killers == frozenset({2})


async def test_a_volume_that_was_full_at_first_is_used_as_soon_as_it_can_be(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    checkpoint = VolumeCheckpoint(folder, "job")
    with monkeypatch.context() as full:
        full.setattr(Path, "mkdir", refuse)
        await checkpoint.open()
        await checkpoint.begin(1, Care.TOGETHER)
        checkpoint.remember(REQUEST, ANSWER)
        await asyncio.sleep(2 * ANSWERS_INTERVAL_S)
        await checkpoint.end(1, outcome(1))
    await checkpoint.begin(2, Care.TOGETHER)
    await checkpoint.end(2, outcome(2))
    assert set((await history_of(folder)).done) == {1, 2}


async def test_on_a_volume_that_stays_full_no_attempt_passes_for_dead(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    for ending in (Ending.DONE, Ending.LEFT):
        checkpoint = VolumeCheckpoint(folder, "job")
        await checkpoint.open()
        await checkpoint.begin(1, Care.TOGETHER)
        with monkeypatch.context() as full:
            full.setattr(Path, "mkdir", refuse)
            await checkpoint.end(1, outcome(1))
            await checkpoint.close(ending)
    assert await history_of(folder) == History()


async def test_a_volume_that_cannot_be_read_is_no_reason_to_fail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await die(folder, 1)

    def stale(path: Path) -> bytes:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(Path, "read_bytes", stale)
    assert await VolumeCheckpoint(folder, "job").open() == History()


async def test_nothing_is_written_after_the_end(folder: Path) -> None:
    checkpoints = Checkpoints(folder, "p")
    checkpoint = checkpoints.of("key", "job", wanted=True)
    await checkpoint.open()
    await checkpoint.close(Ending.DONE)
    checkpoint.remember(REQUEST, ANSWER)
    await checkpoints.leave()
    await asyncio.sleep(2 * ANSWERS_INTERVAL_S)
    assert [path for path in folder.rglob("*") if path.is_file()] == []


async def test_folders_that_expired_while_a_document_was_read_are_made_again(folder: Path) -> None:
    checkpoint = VolumeCheckpoint(folder, "job")
    await checkpoint.open()
    await checkpoint.begin(1, Care.TOGETHER)
    shutil.rmtree(folder)
    await checkpoint.end(1, outcome(1))
    await checkpoint.begin(2, Care.TOGETHER)
    await checkpoint.end(2, outcome(2))
    assert set((await history_of(folder)).done) == {1, 2}


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
    await checkpoint.begin(1, Care.TOGETHER)
    await checkpoint.end(1, outcome(1))
    await checkpoint.close(Ending.DONE)


async def test_two_workers_on_one_document_do_not_harm_each_other(folder: Path) -> None:
    a, b = VolumeCheckpoint(folder, "a"), VolumeCheckpoint(folder, "b")
    await a.open()
    await b.open()
    for checkpoint in (a, b):
        await checkpoint.begin(1, Care.TOGETHER)
        await checkpoint.end(1, outcome(1))
    await a.close(Ending.DONE)
    await b.begin(2, Care.TOGETHER)
    await b.end(2, outcome(2))
    await b.close(Ending.DONE)
    assert (await VolumeCheckpoint(folder, "c").open()).done == {1: outcome(1), 2: outcome(2)}


def test_without_a_volume_or_a_wish_nothing_is_written(tmp_path: Path) -> None:
    assert isinstance(Checkpoints(None, "p").of("key", "job", wanted=True), NoCheckpoint)
    assert isinstance(Checkpoints(tmp_path, "p").of("key", "job", wanted=False), NoCheckpoint)
    assert list(tmp_path.iterdir()) == []
