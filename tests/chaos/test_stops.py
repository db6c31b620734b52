"""Workers that are told to stop at any moment: they leave in time, nothing of theirs stays, nothing is read twice."""

import asyncio
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.stopper import Stop, Stopper
from tests.support.waiting import until
from tests.support.worker_rig import Document, Rig, ledger_of, running_rig

GRACE_S = 2.0
PAGES = 20
LONGEST_S = 5.0
"""A worker is stopped at most so long after it was given a job, which takes about as long."""
SIDE_BY_SIDE, EACH = 5, 6
STOPS, BUSY_STOPS = SIDE_BY_SIDE * EACH, 20


class Feed:
    """Documents as long as they are wanted: some always wait, so that no worker is without a job."""

    def __init__(self, rig: Rig) -> None:
        self.documents: list[Document] = []
        self.deliveries: list[asyncio.Task[dict[str, Any]]] = []
        self._rig = rig
        self._enough = False

    async def run(self) -> None:
        emulator = self._rig.emulator
        while not self._enough:
            self._add()
            await until(emulator, lambda: self._enough or self._open() < 3 * SIDE_BY_SIDE)

    def end(self) -> None:
        self._enough = True
        self._rig.emulator.queue.changed.notify()

    def _open(self) -> int:
        return sum(not delivery.done() for delivery in self.deliveries)

    def _add(self) -> None:
        document = self._rig.document(len(self.documents) + 1, PAGES)
        self.documents.append(document)
        self.deliveries.append(asyncio.create_task(self._rig.deliver(document, tries=60)))


@pytest.mark.chaos
@pytest.mark.timeout(600)
async def test_sigterm_at_thirty_random_instants(tmp_path: Path) -> None:
    chance = random.Random(4)
    settings = {"SHUTDOWN_GRACE_S": str(GRACE_S), "OCR_WORKER_CONCURRENCY": "1"}
    async with running_rig(tmp_path, seconds=1.0, slots=16, settings=settings) as rig:
        feed = Feed(rig)
        feeding = asyncio.create_task(feed.run())
        stopper = Stopper(rig, feed.documents, chance, LONGEST_S)

        async def stop_some(name: str) -> list[Stop]:
            return [await stopper.stop(f"{name}{n}", busy=chance.random() < 0.9) for n in range(EACH)]

        stops = [stop for some in await asyncio.gather(*map(stop_some, "abcde")) for stop in some]
        feed.end()
        await feeding
        for document, result in zip(feed.documents, await asyncio.gather(*feed.deliveries), strict=True):
            assert ledger_of(result) == document.ledger()
        slowest = max(stop.seconds for stop in stops)
        requeued = sum(job.requeues for job in rig.emulator.jobs())
        kept = {page for stop in stops for page in stop.kept}
        sys.stdout.write(
            f"{len(stops)} stops: {dict(Counter(stop.phase for stop in stops))}; slowest {slowest:.1f} s, "
            f"{requeued} jobs moved on, {len(kept)} pages of theirs in checkpoints\n"
        )
        assert len(stops) == STOPS
        assert [stop for stop in stops if stop.orphans] == []
        assert {stop.code for stop in stops} == {0}
        assert slowest <= GRACE_S + 2
        assert sum(stop.jobs > 0 for stop in stops) >= BUSY_STOPS
        assert requeued > 0
        asked = rig.engine.asked()
        for stop in stops:
            assert {page: asked[page] for page in stop.kept} == stop.kept, "a finished page was read again"
