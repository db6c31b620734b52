"""Finding a document again: by its reference, the beginning of one, or a job id of the platform."""

import msgspec

from glmocr_runpod.desk import Desk
from glmocr_runpod.errors import ConfigError
from glmocr_runpod.identity import job_key
from glmocr_runpod.plan import Carry, Part, Plan
from glmocr_runpod.resume import Entry, Stage

SHORTEST = 6
ADOPTED = "job:"
"""Begins what stands for the content key of a job that is only known by its id."""


def find_plan(desk: Desk, reference: str) -> tuple[str, Plan] | None:
    """The document whose reference begins so. Raises `ConfigError` when several do."""
    if len(reference) < SHORTEST:
        raise ConfigError(f"a reference has at least {SHORTEST} characters")
    found = [(key, plan) for key, plan in desk.ledger.plans() if key.startswith(reference)]
    if len(found) > 1:
        raise ConfigError(f"{reference} is the beginning of {len(found)} references")
    return (found[0][0], msgspec.json.decode(found[0][1], type=Plan)) if found else None


def adopt(desk: Desk, api_url: str, endpoint_id: str, job_id: str) -> Plan:
    """The plan of one job known only by the platform's id, submitted by this client or by somebody else."""
    for entry in desk.ledger.entries():
        if entry.job_id == job_id:
            return _plan_of(entry.name, entry.content_key)
    content = f"{ADOPTED}{job_id}"
    key = job_key(api_url, endpoint_id, content)
    desk.ledger.put(
        Entry(
            key=key,
            content_key=content,
            name=job_id,
            stage=Stage.SUBMITTED,
            idempotency_key="",
            job_id=job_id,
            total_runs=1,
            runs=1,
            submitted_at=desk.time.wall(),
            ttl_s=24 * 3600.0,
        )
    )
    return _plan_of(job_id, content)


def _plan_of(name: str, content: str) -> Plan:
    part = Part(content_key=content, digest="", carry=Carry.URL, pages=None)
    return Plan(name=name, digest="", size=0, content_key=content, parts=(part,))
