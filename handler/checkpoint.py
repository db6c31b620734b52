"""What survives a worker: finished pages, one file each, under the document's content key.

A page is staged and renamed, so a file that exists is whole. Every attempt at a document leaves a file while it runs
and marks the pages it is reading; an attempt that did not end itself is a death, and a page that two dead attempts
were reading is a suspect. The volume is a help, never a condition: what cannot be written there is only logged.
"""

import asyncio
import errno
import gzip
import json
import logging
import os
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from handler.page_outcome import Figure, PageOutcome
from handler.schema import PageResult, Usage
from handler.volume import write_whole

log = logging.getLogger(__name__)

DEATHS_BEFORE_CAUTION = 2
"""So many dead attempts, and suspects are read alone instead of beside others."""
ATTEMPT_STALE_S = 120.0
"""An attempt of another job counts as dead when it has not touched its file for so long."""


@dataclass(frozen=True)
class History:
    """What earlier attempts left behind."""

    done: dict[int, PageOutcome] = field(default_factory=dict)
    deaths: int = 0
    suspects: frozenset[int] = frozenset()
    """Pages that were being read in two attempts that died: to be read alone, last."""
    killers: frozenset[int] = frozenset()
    """Pages that were being read alone when the worker died: not to be read again."""


class Checkpoint(Protocol):
    """The kept state of one document with one set of options."""

    async def open(self) -> History:
        """Begin an attempt and tell what earlier ones left."""

    async def begin(self, page: int, *, alone: bool) -> None:
        """Say that this page is being read."""

    async def keep(self, page: int, outcome: PageOutcome) -> None:
        """Store a finished page."""

    async def close(self) -> None:
        """End the attempt in good order. Finished pages stay."""


class NoCheckpoint:
    """For `checkpoint: false` and for workers without a volume: remembers nothing."""

    async def open(self) -> History:
        """Nothing came before."""
        return History()

    async def begin(self, page: int, *, alone: bool) -> None:
        """Nothing to note."""

    async def keep(self, page: int, outcome: PageOutcome) -> None:
        """Nothing to keep."""

    async def close(self) -> None:
        """Nothing to end."""


class VolumeCheckpoint:
    """The state in `folder`, shared by every worker that mounts the volume.

    Two workers may hold the same folder at once: both rename whole files onto the same names, so they at most do a
    page twice.
    """

    def __init__(self, folder: Path, job_id: str) -> None:
        self._folder = folder
        self._attempts = folder / "attempts"
        self._job_id = job_id
        self._attempt = uuid.uuid4().hex
        self._broken = False

    async def open(self) -> History:
        """Read what is there, count deaths, begin this attempt."""
        history = await asyncio.to_thread(self._read_history)
        await self._try(self._start_attempt)
        return history

    async def begin(self, page: int, *, alone: bool) -> None:
        """Mark the page as being read by this attempt."""
        await self._try(self._mark(page, alone).touch)

    async def keep(self, page: int, outcome: PageOutcome) -> None:
        """Stage the page, rename it, then take its mark away."""
        await self._try(lambda: self._write(page, outcome))

    async def close(self) -> None:
        """Take this attempt's file and marks away."""
        await self._try(self._end_attempt)

    async def _try(self, action: "Action") -> None:
        if self._broken:
            return
        try:
            await asyncio.to_thread(action)
        except OSError as error:
            self._broken = error.errno not in (errno.ENOSPC, errno.EDQUOT)
            log.warning("checkpoint not written: %s", error, extra={"fields": {"folder": self._folder.name[:12]}})

    def _read_history(self) -> History:
        done = dict(self._stored_pages())
        dead = self._dead_attempts()
        reading = Counter(page for attempt in dead for page in self._marked(attempt, alone=False))
        killers = frozenset(page for attempt in dead for page in self._marked(attempt, alone=True))
        suspects = frozenset(page for page, deaths in reading.items() if deaths >= DEATHS_BEFORE_CAUTION)
        return History(done, len(dead), suspects - done.keys() - killers, killers - done.keys())

    def _stored_pages(self) -> Iterable[tuple[int, PageOutcome]]:
        for path in sorted(self._folder.glob("page-*.json.gz")):
            outcome = read_page(path)
            if outcome is not None:
                yield outcome.result.page, outcome

    def _dead_attempts(self) -> list[str]:
        """Attempts that did not end themselves: of this job (the platform runs one at a time), or long silent."""
        dead = []
        for path in self._attempts.glob("*.attempt"):
            try:
                owner, touched = path.read_text(), path.stat().st_mtime
            except FileNotFoundError:
                continue
            if owner == self._job_id or time.time() - touched > ATTEMPT_STALE_S:
                dead.append(path.stem)
        return dead

    def _marked(self, attempt: str, *, alone: bool) -> set[int]:
        suffix = "alone" if alone else "page"
        return {int(path.name.split(".")[1]) for path in self._attempts.glob(f"{attempt}.*.{suffix}")}

    def _mark(self, page: int, alone: bool) -> Path:
        return self._attempts / f"{self._attempt}.{page}.{'alone' if alone else 'page'}"

    def _start_attempt(self) -> None:
        self._attempts.mkdir(parents=True, exist_ok=True)
        (self._attempts / f"{self._attempt}.attempt").write_text(self._job_id)

    def _write(self, page: int, outcome: PageOutcome) -> None:
        write_page(self._folder / f"page-{page:05d}.json.gz", outcome)
        for alone in (False, True):
            self._mark(page, alone).unlink(missing_ok=True)
        os.utime(self._attempts / f"{self._attempt}.attempt")

    def _end_attempt(self) -> None:
        for path in self._attempts.glob(f"{self._attempt}.*"):
            path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Checkpoints:
    """Where checkpoints are kept. Without a volume there are none."""

    root: Path | None
    pipeline: str
    """Identifies everything but the content that decides a page's text: versions, models, ceilings."""

    def of(self, key: str, job_id: str, *, wanted: bool) -> Checkpoint:
        """The checkpoint of the document with this content key."""
        if self.root is None or not wanted:
            return NoCheckpoint()
        return VolumeCheckpoint(self.root / key / self.pipeline, job_id)


class Action(Protocol):
    """Something to do in a thread."""

    def __call__(self) -> object:
        """Do it; may raise `OSError`."""


def write_page(path: Path, outcome: PageOutcome) -> None:
    """Write one page whole or not at all. Figures are stored beside their page, in the same file."""
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
