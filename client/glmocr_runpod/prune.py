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


def plan_pruning(ledger: SqliteLedger, before: float, also: Iterable[Stage] = ()) -> Pruning:
    """What has not changed since `before` (seconds since 1970) and is settled, or in one of the stages `also`."""
    old = SETTLED | (frozenset(also) & ON_DEMAND)
    jobs = {job.entry.key: job for job in ledger.remembered()}
    by_content: dict[str, list[Remembered]] = {}
    for job in jobs.values():
        by_content.setdefault(job.entry.content_key, []).append(job)
    plans = {key: (msgspec.json.decode(data, type=Plan), made) for key, data, made in ledger.made_plans()}
    members = {
        key: [job for part in plan.sent for job in by_content.get(part.content_key, [])]
        for key, (plan, _) in plans.items()
    }
    gone = {
        key
        for key, (_, made) in plans.items()
        if made < before and all(job.changed < before and job.entry.stage in old for job in members[key])
    }
    needed = {job.entry.key for key in plans.keys() - gone for job in members[key]}
    planned = {job.entry.key for key in gone for job in members[key]}
    strays = [
        job
        for job in jobs.values()
        if job.entry.key not in needed | planned and job.changed < before and job.entry.stage in old
    ]
    leaving = [jobs[key] for key in sorted(planned - needed)] + strays
    files = _files(ledger, [plans[key][0] for key in plans.keys() - gone], jobs.keys() - _keys(leaving), before)
    sizes = {file.name.partition(".")[0]: file.size for file in files}
    shown = [(key, plans[key][0].name, members[key]) for key in sorted(gone)]
    shown += [(job.entry.key, job.entry.name, [job]) for job in strays]
    documents = (_forgotten(key, name, of, sizes) for key, name, of in shown)
    return Pruning(tuple(documents), tuple(sorted(gone)), tuple(leaving), files)


def prune(ledger: SqliteLedger, pruning: Pruning) -> None:
    """Forget it. Whatever another process has changed since it was planned stays."""
    for key in pruning.plans:
        ledger.forget_plan(key)
    changed = {job.entry.key for job in pruning.jobs if not ledger.forget(job)}
    for file in pruning.files:
        if file.name.partition(".")[0] not in changed:
            ledger.drop(file.name)


def _files(ledger: SqliteLedger, plans: Sequence[Plan], keys: Iterable[str], before: float) -> tuple[KeptFile, ...]:
    """What neither a job nor a plan that stays refers to. New files may belong to a job that is just being made."""
    wanted = set(keys) | {part.digest for plan in plans for part in plan.parts if part.kept}
    return tuple(f for f in ledger.files() if f.changed < before and f.name.partition(".")[0] not in wanted)


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
