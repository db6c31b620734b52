"""What a call would do, before it is made: how a document would travel, and how many jobs would be sent for it."""

from collections import Counter

import msgspec

from glmocr_runpod.contract import Options
from glmocr_runpod.documents import Reader, load_plan
from glmocr_runpod.effects import Flow
from glmocr_runpod.events import Event
from glmocr_runpod.identity import content_key
from glmocr_runpod.plan import Part, TransportStep
from glmocr_runpod.prepare import prepare
from glmocr_runpod.resume import Step, next_step, without_result
from glmocr_runpod.sources import Source


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What `parse` would do with one document now."""

    reference: str
    name: str
    pages: int | None
    """Pages that would be read; None where the client cannot count them."""
    jobs: int
    """Jobs the document takes."""
    to_send: int
    """Jobs that would be sent, or queued again, and paid for."""
    undecided: int
    """Jobs that may or may not have run: without consent the call would end with `Ambiguous` or `Lost`."""
    carried: dict[str, int]
    """How its jobs' documents travel, and how many each way; `none` for pages that nothing carries."""
    known: dict[str, int]
    """What the ledger has of its jobs, by stage."""
    transport: tuple[TransportStep, ...] = ()


def forecast(reader: Reader, source: Source, options: Options) -> Flow[Forecast]:
    """The forecast for one document. Raises what `prepare` raises."""
    key = reader.key(content_key(source.digest, options))
    plan = load_plan(reader.desk, key)
    if plan is None:
        plan = yield from prepare(reader.kit, source, options, observer=_nobody, keep=_nowhere)
    steps = Counter(_step(reader, part) for part in plan.sent)
    entries = [reader.desk.ledger.get(reader.key(part.content_key)) for part in plan.sent]
    covered = [number for part in plan.parts for number in part.covers]
    return Forecast(
        reference=key,
        name=plan.name,
        pages=len(covered) or None,
        jobs=len(plan.sent),
        to_send=steps[Step.SUBMIT] + steps[Step.REQUEUE],
        undecided=steps[Step.SEARCH],
        carried=dict(Counter(part.carry.value for part in plan.parts)),
        known=dict(Counter(entry.stage.value for entry in entries if entry is not None)),
        transport=plan.steps,
    )


def _step(reader: Reader, part: Part) -> Step:
    """What the call would do first, once it has looked into the storage."""
    desk = reader.desk
    entry = desk.ledger.get(reader.key(part.content_key))
    step = next_step(entry, desk.consents, result_on_disk=True)
    if step is Step.SEARCH and entry is not None and without_result(entry.stage, desk.consents) is Step.SUBMIT:
        return Step.SUBMIT
    return step


def _nobody(event: Event) -> None:
    del event


def _nowhere(name: str, data: bytes) -> None:
    del name, data
