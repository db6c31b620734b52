"""What survives a worker: finished pages, one file each, and journals of attempts, under the document's content key.

A page is staged and renamed, so a file that exists is whole. Every attempt at a document keeps a journal of the pages
it is reading and of the engine's answers (`attempts.py`): the next one asks for nothing that was answered, and an
attempt that did not end itself is a death, which what it was reading may have caused. The volume is a help, never a
condition: what cannot be written there is only logged.
"""

import asyncio
import errno
import gzip
import json
import logging
import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from weakref import WeakSet

from pydantic import ValidationError

from handler.attempts import (
    Answers,
    Attempt,
    Ending,
    Journal,
    Record,
    answered,
    ended,
    finished,
    key_of,
    read_attempts,
    started,
)
from handler.company import Care
from handler.engine.api import EngineRequest
from handler.page_outcome import Figure, PageOutcome, may_fare_better
from handler.recognition.reading import Answer
from handler.schema import PageResult, Usage
from handler.volume import write_whole
from handler.volume_writes import VolumeWrites

log = logging.getLogger(__name__)

DEATHS_BEFORE_CAUTION = 2
"""A page that so many dead attempts were reading is no longer read together with others."""
DEATHS_ALONE = 2
"""After so many with nothing else in the worker it is the page's fault: chance hardly strikes just then, twice."""
ANSWERS_INTERVAL_S = 0.25
"""Answers are written together so often: what a death can cost beside what is in the engine."""


@dataclass(frozen=True)
class History:
    """What earlier attempts left behind."""

    done: Mapping[int, PageOutcome] = field(default_factory=dict)
    deaths: int = 0
    care: Mapping[int, Care] = field(default_factory=dict)
    """How the pages that dead attempts were reading are to be read now; the others are read together."""
    killers: frozenset[int] = frozenset()
    """Pages that are not to be read again: each was alone in its worker when that died, more than once."""


class Checkpoint(Protocol):
    """The kept state of one document with one set of options. It knows answers of the engine (`KnownAnswers`)."""

    async def open(self) -> History:
        """Begin an attempt and tell what earlier ones left."""

    async def begin(self, page: int, care: Care) -> None:
        """Say that this page is being read."""

    async def end(self, page: int, outcome: PageOutcome) -> None:
        """It no longer is; it is stored unless another attempt may read more of it."""

    async def close(self, ending: Ending) -> None:
        """End the attempt. Stored pages stay."""

    def recall(self, request: EngineRequest) -> Answer | None:
        """What the engine answered to this request in an earlier attempt; every answer is given once."""

    def remember(self, request: EngineRequest, answer: Answer) -> None:
        """Keep the engine's answer for an attempt yet to come."""


class NoCheckpoint:
    """For `checkpoint: false` and for workers without a volume: remembers nothing."""

    async def open(self) -> History:
        """Nothing came before."""
        return History()

    async def begin(self, page: int, care: Care) -> None:
        """Nothing to note."""

    async def end(self, page: int, outcome: PageOutcome) -> None:
        """Nothing to keep."""

    async def close(self, ending: Ending) -> None:
        """Nothing to end."""

    def recall(self, request: EngineRequest) -> Answer | None:
        """Nothing is known."""
        return None

    def remember(self, request: EngineRequest, answer: Answer) -> None:
        """Nothing to keep."""


class VolumeCheckpoint:
    """The state in `folder`, shared by every worker that mounts the volume.

    Two workers may hold the same folder at once: both rename whole files onto the same names and each has a journal of
    its own, so they at most do a page twice.
    """

    def __init__(self, folder: Path, job_id: str) -> None:
        self._folder = folder
        self._job_id = job_id
        self._journal = Journal(folder / "attempts", job_id)
        self._writes = VolumeWrites(folder.parent.name[:12])
        self._over: list[Attempt] = []
        self._known: Answers = defaultdict(deque)
        self._killers: frozenset[int] = frozenset()
        self._unstored: set[int] = set()
        self._answers: list[tuple[EngineRequest, Answer]] = []
        self._flushing: asyncio.Task[None] | None = None
        self._ended = False

    async def open(self) -> History:
        """Read what is there, count deaths, begin this attempt."""
        try:
            history = await asyncio.to_thread(self._read_history)
        except OSError as error:
            log.warning("what earlier attempts left cannot be read: %s", error)
            history = History()
        self._killers = history.killers
        await self._writes.do(self._append)
        return history

    async def begin(self, page: int, care: Care) -> None:
        """Note in the journal that the page is being read."""
        self._unstored.add(page)
        await self._writes.do(lambda: self._append(started(page, care)))

    async def end(self, page: int, outcome: PageOutcome) -> None:
        """Stage the page, rename it, then note that it is no longer being read."""
        await self._writes.do(lambda: self._end(page, outcome))

    async def close(self, ending: Ending) -> None:
        """End the journal, or take it away when all of it stands in stored pages."""
        if self._flushing is not None:
            self._flushing.cancel()
        if ending is not Ending.DONE or self._unstored:
            await self._keep_answers()
        await self._writes.do()
        await asyncio.to_thread(self._close, ending)

    async def leave(self) -> None:
        """The worker will stop: note it now, since it may be killed before it has closed."""
        await self._writes.do(lambda: self._append(ended(Ending.LEFT)))

    def recall(self, request: EngineRequest) -> Answer | None:
        """From the journals of earlier attempts."""
        known = self._known.get(key_of(request)) if self._known else None
        return known.popleft() if known else None

    def remember(self, request: EngineRequest, answer: Answer) -> None:
        """Into this attempt's journal, a moment later."""
        self._answers.append((request, answer))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush())

    async def _flush(self) -> None:
        await asyncio.sleep(ANSWERS_INTERVAL_S)
        self._flushing = None
        await self._keep_answers()

    async def _keep_answers(self) -> None:
        answers, self._answers = self._answers, []
        # Not in the write itself: what waits for a full volume should not keep the pictures.
        records = await asyncio.to_thread(lambda: [answered(request, answer) for request, answer in answers])
        await self._writes.do(lambda: self._append(*records))

    def _read_history(self) -> History:
        done = dict(self._stored_pages())
        attempts, self._known = read_attempts(self._folder / "attempts")
        now = time.time()
        dead = [attempt for attempt in attempts if attempt.died(self._job_id, now)]
        self._over = [*dead, *(attempt for attempt in attempts if attempt.ending is not None)]
        care, killers = blame(dead)
        return History(done, len(dead), {page: care[page] for page in care.keys() - done.keys()}, killers - done.keys())

    def _stored_pages(self) -> Iterable[tuple[int, PageOutcome]]:
        for path in sorted(self._folder.glob("page-*.json.gz")):
            outcome = read_page(path)
            if outcome is not None:
                yield outcome.result.page, outcome

    def _append(self, *records: Record) -> None:
        """Nothing after the end: a worker may be told to stop, or an answer come, just then."""
        if not self._ended:
            self._journal.append(records)

    def _end(self, page: int, outcome: PageOutcome) -> None:
        if not may_fare_better(outcome.result):
            write_page(self._folder / f"page-{page:05d}.json.gz", outcome)
            self._unstored.discard(page)
        self._append(finished(page))

    def _close(self, ending: Ending) -> None:
        """Without a journal rather than with one that would pass for a death."""
        self._ended = True
        try:
            if self._writes.stuck:
                raise OSError(errno.ENOSPC, "the volume is full")
            if ending is not Ending.DONE or self._unstored:
                self._journal.append([ended(ending)])
                return
            for attempt in () if self._killers else self._over:
                attempt.path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the attempt's journal is given up: %s", error)
        with suppress(OSError):
            self._journal.remove()


def blame(dead: Iterable[Attempt]) -> tuple[dict[int, Care], frozenset[int]]:
    """How carefully to read the pages that dead attempts were reading, and those never to read again."""
    reading = [(page, care) for attempt in dead for page, care in attempt.reading.items()]
    deaths = Counter(page for page, _ in reading)
    alone = Counter(page for page, care in reading if care is Care.ALONE)
    killers = frozenset(page for page, count in alone.items() if count >= DEATHS_ALONE)
    care = {page: Care.SINGLED_OUT for page, count in deaths.items() if count >= DEATHS_BEFORE_CAUTION}
    care |= {page: Care.ALONE for page, so_far in reading if so_far is not Care.TOGETHER}
    return {page: to_be for page, to_be in care.items() if page not in killers}, killers


@dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints are kept. Without a volume there are none."""

    root: Path | None
    pipeline: str
    """Identifies everything but the content that decides a page's text: versions, models, ceilings."""
    _made: WeakSet[VolumeCheckpoint] = field(default_factory=WeakSet, compare=False)

    def of(self, key: str, job_id: str, *, wanted: bool) -> Checkpoint:
        """The checkpoint of the document with this content key."""
        if self.root is None or not wanted:
            return NoCheckpoint()
        checkpoint = VolumeCheckpoint(self.root / key / self.pipeline, job_id)
        self._made.add(checkpoint)
        return checkpoint

    async def leave(self) -> None:
        """The worker was told to stop: no attempt that is under way counts as a death any more."""
        await asyncio.gather(*(checkpoint.leave() for checkpoint in list(self._made)))


def write_page(path: Path, outcome: PageOutcome) -> None:
    """Write one page whole or not at all. Figures are stored beside their page, in the same file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "result": outcome.result.model_dump(mode="json"),
        "usage": outcome.usage.model_dump(mode="json"),
        "figures": [[f.name, f.page, f.region, f.jpeg.hex()] for f in outcome.figures],
    }
    write_whole(path, gzip.compress(json.dumps(record).encode(), compresslevel=3, mtime=0))


def read_page(path: Path) -> PageOutcome | None:
    """The page in `path`, or None when the file cannot be used: it is then read again, never trusted."""
    try:
        record = json.loads(gzip.decompress(path.read_bytes()))
        figures = tuple(
            Figure(name, page, region, bytes.fromhex(jpeg)) for name, page, region, jpeg in record["figures"]
        )
        return PageOutcome(PageResult.model_validate(record["result"]), Usage.model_validate(record["usage"]), figures)
    except (OSError, EOFError, ValueError, KeyError, TypeError, ValidationError) as error:
        log.warning("checkpointed page ignored: %s: %s", type(error).__name__, path.name)
        return None
