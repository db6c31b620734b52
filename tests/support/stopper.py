"""Ends workers that run beside the emulator's own, and tells what was left of them."""

import asyncio
import random
import signal
import time
from collections import Counter
from dataclasses import dataclass

from emulator.processes import WorkerProcess
from tests.support.survivors import survivors
from tests.support.waiting import until
from tests.support.worker_rig import Document, Rig

"""What has not ended so long after its worker is an orphan; a forkserver may still be importing when it is stopped."""


@dataclass(frozen=True)
class Stop:
    """How a worker ended."""

    code: int
    seconds: float
    orphans: list[str]
    jobs: int
    """It had so many at that moment."""
    pages: int
    """Of these jobs."""
    answered: int
    """So many of them."""
    kept: Counter[str]
    """How often it had been asked for the pages that were in their checkpoints when the worker had ended."""

    @property
    def phase(self) -> str:
        """Of the job it had."""
        if not self.jobs:
            return "no job"
        if not self.answered:
            return "before its first page"
        return "after its last page" if self.answered >= self.pages else "reading"


class Stopper:
    """Starts workers beside the emulator's own, and ends them."""

    def __init__(self, rig: Rig, documents: list[Document], chance: random.Random, longest_s: float) -> None:
        """`documents` may still grow."""
        self._rig = rig
        self._documents = documents
        self._chance = chance
        self._longest_s = longest_s

    async def stop(self, worker_id: str, *, busy: bool, number: signal.Signals = signal.SIGTERM) -> Stop:
        """Some time after its first poll, or, if it is to be `busy`, after it was given a job."""
        rig = self._rig
        process = await WorkerProcess.start(rig.command, worker_id, rig.emulator.worker_env(worker_id))
        worker = rig.emulator.fleet.get(worker_id)
        assert worker is not None
        await until(rig.emulator, lambda: worker.state == "ready")
        if busy:
            await until(rig.emulator, lambda: bool(rig.emulator.queue.running(worker_id)))
        await asyncio.sleep(self._chance.uniform(0, self._longest_s))
        family = process.members()
        inputs = [job.input for job in rig.emulator.queue.running(worker_id)]
        mine = [document for document in self._documents if document.input() in inputs]
        answered = len(self._pages_answered(mine))
        begun = time.monotonic()
        process.signal(number)
        code = await process.wait()
        seconds = time.monotonic() - begun
        kept = Counter({page: rig.engine.asked()[page] for d in mine for page in map(d.page, rig.stored_pages(d))})
        rig.emulator.fleet.gone(worker)
        orphans = [" ".join(p.cmdline()) for p in await asyncio.to_thread(survivors, family)]
        await process.kill()
        return Stop(code, seconds, orphans, len(mine), sum(d.pages for d in mine), answered, kept)

    def _pages_answered(self, documents: list[Document]) -> set[str]:
        return {d.page(n) for d in documents for n in range(1, d.pages + 1)} & self._rig.engine.answered().keys()
