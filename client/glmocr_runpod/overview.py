"""What the ledger knows, document by document."""

from collections import Counter

import msgspec

from glmocr_runpod.ledger import Ledger
from glmocr_runpod.plan import Plan


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """One document: its jobs by stage."""

    reference: str
    name: str
    stages: dict[str, int]
    job_ids: list[str]
    execution_ms: int


def overviews(ledger: Ledger) -> list[Overview]:
    """All documents, the last one first."""
    entries = ledger.entries()
    by_content: dict[str, list[int]] = {}
    for index, entry in enumerate(entries):
        by_content.setdefault(entry.content_key, []).append(index)
    found = []
    for reference, data in ledger.plans():
        plan = msgspec.json.decode(data, type=Plan)
        jobs = [entries[i] for part in plan.sent for i in by_content.get(part.content_key, [])]
        found.append(
            Overview(
                reference=reference,
                name=plan.name,
                stages=dict(Counter(job.stage.value for job in jobs)),
                job_ids=[job.job_id for job in jobs if job.job_id],
                execution_ms=sum(job.execution_ms for job in jobs),
            )
        )
    return found
