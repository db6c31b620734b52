"""A fleet that is being shot at delivers every page of every document, and asks the engine for little twice."""

import asyncio
import contextlib
import math
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from emulator import Fault, FaultKind, JobStatus
from tests.support.coded_pages import codes_of
from tests.support.worker_rig import Document, Rig, ledger_of, running_rig

MOST_REPEATED = 1.15
"""Requests to the engine, as a multiple of those of a run without faults: one for each region."""
BLOCKS = 12


@contextlib.asynccontextmanager
async def meanwhile(*troubles: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Trouble that lasts as long as the block."""
    tasks = [asyncio.create_task(trouble) for trouble in troubles]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        endings = await asyncio.gather(*tasks, return_exceptions=True)
        assert [e for e in endings if isinstance(e, Exception)] == []


async def kill_workers(
    rig: Rig,
    every_s: float,
    chance: random.Random,
    kills: list[str],
    *,
    most: float = math.inf,
    before: Callable[[], None] = lambda: None,
) -> None:
    """SIGKILL one ready worker after the other, `most` of them."""
    while len(kills) < most:
        await asyncio.sleep(every_s)
        ready = [w.id for w in rig.emulator.workers() if w.state == "ready"]
        if ready:
            before()
            kills.append(chance.choice(ready))
            await rig.emulator.kill_worker(kills[-1])


async def kill_engine(rig: Rig, kills: list[float], *after_s: float) -> None:
    """SIGKILL the engine; it is back two seconds later."""
    for pause in after_s:
        await asyncio.sleep(pause)
        await rig.engine.kill()
        kills.append(pause)
        await asyncio.sleep(2)
        await rig.engine.start()


async def fill_disk(rig: Rig, after_s: float, for_s: float, meanwhile_answered: Counter[str]) -> None:
    """The volume is full for a while: what is answered then is kept nowhere until it has room again."""
    await asyncio.sleep(after_s)
    before = rig.engine.answered()
    rig.disk_full.touch()
    await asyncio.sleep(for_s)
    rig.disk_full.unlink()
    meanwhile_answered.update(rig.engine.answered() - before)


def assorted(rig: Rig, count: int, most_pages: int, seed: int) -> list[Document]:
    """Documents of 1 to `most_pages` pages, every 13th page blank."""
    chance = random.Random(seed)
    sizes = [chance.randint(1, most_pages) for _ in range(count)]
    return [rig.document(n, pages, blank=tuple(range(13, pages + 1, 13))) for n, pages in enumerate(sizes, 1)]


def check(rig: Rig, documents: list[Document], results: list[dict[str, Any]]) -> float:
    """Every ledger is whole and nothing is left running; how many requests a page cost."""
    for document, result in zip(documents, results, strict=True):
        assert ledger_of(result) == document.ledger(), f"document {document.number}"
    assert [job.id for job in rig.emulator.jobs() if job.status is JobStatus.IN_PROGRESS] == []
    return sum(rig.engine.asked().values()) / sum(document.pages for document in documents)


async def test_short(tmp_path: Path) -> None:
    async with running_rig(tmp_path, workers=2, seconds=0.1) as rig:
        documents = assorted(rig, 6, 12, seed=2)
        await rig.engine.control(hang=["document 1 page 1"])
        rig.emulator.faults.add(Fault(FaultKind.REFUSE_RESULT, "result", times=1))
        deliveries = asyncio.gather(*(rig.deliver(document) for document in documents))
        await rig.engine.until_asked_for("document 1 page 1", 1)
        victim = next(job for job in rig.emulator.queue.running() if job.input == documents[0].input())
        await rig.emulator.kill_worker(victim.worker_id or "")
        await rig.engine.control(hang=[])
        check(rig, documents, await deliveries)
        assert victim.requeues == 1


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_hundred_documents(tmp_path: Path) -> None:
    kills: list[str] = []
    engine_kills: list[float] = []
    on_full_volume: Counter[str] = Counter()
    async with running_rig(tmp_path, workers=3, slots=16, seconds=0.3) as rig:
        documents = assorted(rig, 100, 40, seed=1)
        rig.emulator.faults.add(Fault(FaultKind.REFUSE_RESULT, "result", probability=0.05))
        begun = time.monotonic()
        troubles = (
            kill_workers(rig, 10, random.Random(3), kills),
            kill_engine(rig, engine_kills, 20, 25),
            fill_disk(rig, 25, 10, on_full_volume),
        )
        async with meanwhile(*troubles):
            results = await asyncio.gather(*(rig.deliver(document) for document in documents))
        seconds = time.monotonic() - begun
        cost = check(rig, documents, results)
        refused = sum(bool(job.refused_posts) for job in rig.emulator.jobs())
        pages = sum(document.pages for document in documents)
        unanswered = rig.engine.asked().total() - rig.engine.answered().total()
        answered = Counter({page: n for page, n in rig.engine.answered().items() if page.startswith("document")})
        twice = answered - Counter(set(answered))
        lost_on_full = sum((twice & on_full_volume).values())
        sys.stdout.write(
            f"{pages} pages, {seconds:.0f} s, {len(kills)} kills, {refused} refused, {cost:.3f} requests/page: "
            f"{unanswered} not answered, {twice.total()} answered twice, {lost_on_full} of these on a full volume\n"
        )
        assert len(kills) >= 3
        assert len(engine_kills) == 2
        assert refused > 0
        assert cost <= MOST_REPEATED


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_regions_of_half_read_pages_are_not_asked_for_again(tmp_path: Path) -> None:
    kills: list[str] = []
    half_read: list[int] = []
    settings = {"LAYOUT_DOUBLE": "blocks"}
    async with running_rig(tmp_path, workers=2, slots=16, seconds=0.2, settings=settings) as rig:
        documents = [rig.document(number, 8, blocks=BLOCKS) for number in range(1, 13)]
        regions = sum(BLOCKS * document.pages for document in documents)

        def count() -> None:
            half_read.append(half(rig, documents))

        async with meanwhile(kill_workers(rig, 4, random.Random(3), kills, most=4, before=count)):
            results = await asyncio.gather(*(rig.deliver(document) for document in documents))
        cost = check(rig, documents, results) / BLOCKS
        sys.stdout.write(
            f"{regions} regions, {len(kills)} kills with {half_read} pages half read, {cost:.3f} requests/region: "
            f"{rig.engine.asked().total() - rig.engine.answered().total()} not answered\n"
        )
        assert len(kills) >= 2
        assert max(half_read) > 10
        assert cost <= MOST_REPEATED


def half(rig: Rig, documents: list[Document]) -> int:
    """How many pages have some of their regions answered and are not in a checkpoint."""
    answered = rig.engine.answered()
    stored = {d.number: rig.stored_pages(d) for d in documents}
    return sum(
        number not in stored[d.number]
        and any(answered[f"document {d.number} page {code}"] for code in codes_of(number, d.blocks))
        for d in documents
        for number in range(1, d.pages + 1)
    )


@pytest.mark.chaos
async def test_page_that_kills_its_worker_is_marked_and_the_rest_is_read(tmp_path: Path) -> None:
    async with running_rig(tmp_path, settings={"OCR_WORKER_CONCURRENCY": "1"}) as rig:
        document = rig.document(7, 5)
        pages = await read_with_deaths(rig, document, document.page(3), 5)
        assert (pages[3]["status"], pages[3]["reason"]) == ("failed", "killed_worker")
        assert [n for n, page in pages.items() if page["status"] == "ok"] == [1, 2, 4, 5]


@pytest.mark.chaos
async def test_page_whose_worker_dies_by_chance_is_read(tmp_path: Path) -> None:
    async with running_rig(tmp_path, settings={"OCR_WORKER_CONCURRENCY": "1"}) as rig:
        document = rig.document(8, 4)
        pages = await read_with_deaths(rig, document, document.page(2), 4)
        assert [page["status"] for page in pages.values()] == ["ok"] * 4


async def read_with_deaths(rig: Rig, document: Document, page: str, deaths: int) -> dict[int, dict[str, Any]]:
    """The document's pages; the first times that `page` is asked for, the worker is killed."""
    await rig.engine.control(hang=[page])
    delivery = asyncio.create_task(rig.deliver(document))
    for death in range(1, deaths + 1):
        await rig.engine.until_asked_for(page, death)
        await rig.emulator.kill_worker(rig.emulator.jobs()[-1].worker_id or "")
    await rig.engine.control(hang=[])
    result = await delivery
    assert result["debug"]["checkpoint"]["deaths"] == deaths
    return {page["page"]: page for page in result["pages"]}
