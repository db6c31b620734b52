"""What the state directory need not remember: documents that were settled long ago, and files nobody refers to.

What may still cost money is never among it unless named: a live job, and one that was lost or left ambiguous, for its
entry is what keeps the document from being paid for again unasked.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from glmocr_runpod.ledger import KeptFile, Remembered, SqliteLedger
from glmocr_runpod.plan import Plan
from glmocr_runpod.resume import Stage

SETTLED = frozenset({Stage.STORED, Stage.FAILED, Stage.CANCELLED, Stage.INTENDED})
"""Nothing runs, and what a run brought is known."""
ON_DEMAND = frozenset({Stage.AMBIGUOUS, Stage.LOST})


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """One document, or one job that belongs to none."""

    reference: str
    name: str
    stages: dict[str, int]
    changed: float
    """Seconds since 1970."""
    size: int
    """Bytes of its results."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """What will be forgotten. Nothing is done by making it."""

    documents: tuple[Forgotten, ...]
    plans: tuple[str, ...]
    jobs: tuple[Remembered, ...]
    files: tuple[KeptFile, ...]
    """Results and parts of those, and leftovers."""

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class _Document:
    """A document with the jobs the ledger has of it."""

    key: str
    plan: Plan
    made: float
    jobs: tuple[Remembered, ...]


def plan_pruning(ledger: SqliteLedger, before: float, also: Iterable[Stage] = ()) -> Pruning:
    """What has not changed since `before` (seconds since 1970) and is settled, or in one of the stages `also`."""
    stages = SETTLED | (frozenset(also) & ON_DEMAND)

    def is_old(job: Remembered) -> bool:
        return job.changed < before and job.entry.stage in stages

    jobs = ledger.remembered()
    documents = _documents(ledger, jobs)
    gone = [one for one in documents if one.made < before and all(map(is_old, one.jobs))]
    stay = [one for one in documents if one not in gone]
    needed, planned = (_keys(job for one in group for job in one.jobs) for group in (stay, documents))
    strays = [job for job in jobs if job.entry.key not in planned and is_old(job)]
    leaving = [job for job in jobs if job.entry.key in _keys(strays) | planned - needed]
    kept = _keys(jobs) - _keys(leaving) | {part.digest for one in stay for part in one.plan.parts if part.kept}
    # A file that is new may belong to a job that is just being made.
    files = tuple(file for file in ledger.files() if file.changed < before and _owner(file) not in kept)
    sizes = {_owner(file): file.size for file in files}
    shown = [_forgotten(one.key, one.plan.name, one.jobs, sizes) for one in gone]
    shown += [_forgotten(job.entry.key, job.entry.name, (job,), sizes) for job in strays]
    return Pruning(tuple(shown), tuple(one.key for one in gone), tuple(leaving), files)


def prune(ledger: SqliteLedger, pruning: Pruning) -> None:
    """Forget it. Whatever another process has changed since it was planned stays."""
    for key in pruning.plans:
        ledger.forget_plan(key)
    changed = {job.entry.key for job in pruning.jobs if not ledger.forget(job)}
    for file in pruning.files:
        if _owner(file) not in changed:
            ledger.drop(file.name)


def _documents(ledger: SqliteLedger, jobs: Iterable[Remembered]) -> list[_Document]:
    by_content: dict[str, list[Remembered]] = {}
    for job in jobs:
        by_content.setdefault(job.entry.content_key, []).append(job)
    found = []
    for key, data, made in ledger.made_plans():
        plan = msgspec.json.decode(data, type=Plan)
        of = tuple(job for part in plan.sent for job in by_content.get(part.content_key, ()))
        found.append(_Document(key, plan, made, of))
    return found


def _owner(file: KeptFile) -> str:
    """The key of the job, or the digest of the part, that a file belongs to."""
    return file.name.partition(".")[0]


def _keys(jobs: Iterable[Remembered]) -> set[str]:
    return {job.entry.key for job in jobs}


def _forgotten(key: str, name: str, jobs: Sequence[Remembered], sizes: dict[str, int]) -> Forgotten:
    return Forgotten(
        reference=key,
        name=name,
        stages=dict(Counter(job.entry.stage.value for job in jobs)),
        changed=max((job.changed for job in jobs), default=0.0),
        size=sum(sizes.get(job.entry.key, 0) for job in jobs),
    )
