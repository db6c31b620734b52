"""One document: divided into as many jobs as it needs, read, and put together again. Flows only."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from glmocr_runpod.contract import JsonObject, Options
from glmocr_runpod.desk import Desk, Job, leased
from glmocr_runpod.document import Document
from glmocr_runpod.effects import Flow, Together, send
from glmocr_runpod.errors import ClientError, ConfigError, JobFailed, SourceError, TooLarge
from glmocr_runpod.identity import content_key, job_key
from glmocr_runpod.jobs import cancel, run_job, secure
from glmocr_runpod.kit import Kit
from glmocr_runpod.merge import PartResult, merge
from glmocr_runpod.packing import gzipped
from glmocr_runpod.plan import Carry, Part, Plan
from glmocr_runpod.prepare import prepare
from glmocr_runpod.protocol import Gone, Refusal, Snapshot, inline, read_status, status_request
from glmocr_runpod.resume import Consent, Entry, Stage
from glmocr_runpod.schedule import policy
from glmocr_runpod.sources import Source
from glmocr_runpod.storage import RemoteStorage


@dataclass(frozen=True, slots=True)
class Reader:
    """What every document is read with."""

    desk: Desk
    kit: Kit
    api_url: str
    endpoint_id: str
    jobs_at_once: int = 8
    uploader: RemoteStorage | None = None

    def key(self, content: str) -> str:
        """Under which the ledger keeps a content key on this endpoint."""
        return job_key(self.api_url, self.endpoint_id, content)


def read_document(reader: Reader, source: Source, options: Options) -> Flow[Document]:
    """The document's result. Raises a `ClientError`."""
    begun = reader.desk.time.steady()
    plan = yield from planned(reader, source, options)
    jobs = _jobs(reader, plan, options, source)
    return (yield from _read(reader, plan, jobs, begun))


def submit_document(reader: Reader, source: Source, options: Options) -> Flow[str]:
    """The document's reference, once all its jobs are with the platform."""
    plan = yield from planned(reader, source, options)
    outcomes = yield from _all(reader, [secure(reader.desk, job) for job in _jobs(reader, plan, options, source)])
    for outcome in outcomes:
        if isinstance(outcome, ClientError):
            raise outcome
    return reader.key(plan.content_key)


def read_known(reader: Reader, plan: Plan) -> Flow[Document]:
    """The result of a document submitted before. What is not submitted cannot be: its bytes are not at hand."""
    return (yield from _read(reader, plan, _jobs(reader, plan, Options(), None), reader.desk.time.steady()))


def look_at_known(reader: Reader, plan: Plan) -> Flow[bool]:
    """Whether every job of the document has ended, with a result or without."""
    for part in plan.sent:
        entry = reader.desk.ledger.get(reader.key(part.content_key))
        if entry is not None and entry.stage is Stage.SUBMITTED:
            look = read_status((yield from send(status_request(entry.job_id or ""))))
            if isinstance(look, Refusal):
                raise look.error
            if not (isinstance(look, Gone) or (isinstance(look, Snapshot) and look.final)):
                return False
    return True


def cancel_known(reader: Reader, plan: Plan) -> Flow[list[Entry]]:
    """Stop the document's jobs that are with the platform."""
    entries = []
    for part in plan.sent:
        entry = reader.desk.ledger.get(reader.key(part.content_key))
        if entry is not None and entry.stage is Stage.SUBMITTED:
            entry = yield from cancel(reader.desk, entry)
        if entry is not None:
            entries.append(entry)
    return entries


def planned(reader: Reader, source: Source, options: Options) -> Flow[Plan]:
    """The plan the ledger has, or a new one, written before anything is sent."""
    key = reader.key(content_key(source.digest, options))
    known = load_plan(reader.desk, key)
    if known is not None and not _bytes_missing(reader, known) and not _wanted_anew(reader, known):
        return known
    desk = reader.desk
    plan = yield from prepare(reader.kit, source, options, observer=desk.observer, keep=desk.ledger.save)

    def written() -> Flow[Plan]:
        yield from ()
        other = load_plan(reader.desk, key)
        if other is not None and other != known:
            return other
        reader.desk.ledger.put_plan(key, msgspec.json.encode(plan))
        return plan

    return (yield from leased(reader.desk, key, written))


def load_plan(desk: Desk, key: str) -> Plan | None:
    """The document's plan, if it was submitted before."""
    data = desk.ledger.get_plan(key)
    return msgspec.json.decode(data, type=Plan) if data else None


def _bytes_missing(reader: Reader, plan: Plan) -> bool:
    """Whether a part that may still have to be sent was removed from the state directory."""
    for part in plan.sent:
        entry = reader.desk.ledger.get(reader.key(part.content_key))
        done = entry is not None and entry.stage in (Stage.SUBMITTED, Stage.STORED)
        if part.kept and not done and reader.desk.ledger.load(part.digest) is None:
            return True
    return False


def _wanted_anew(reader: Reader, plan: Plan) -> bool:
    """Whether all of a document may be sent again: then it is divided as the settings say now."""
    entries = [reader.desk.ledger.get(reader.key(part.content_key)) for part in plan.sent]
    return Consent.STORED in reader.desk.consents and all(entry and entry.stage is Stage.STORED for entry in entries)


def _read(reader: Reader, plan: Plan, jobs: Sequence[Job], begun: float) -> Flow[Document]:
    if plan.whole:
        data = yield from run_job(reader.desk, jobs[0])
        output = msgspec.json.decode(data)
    else:
        outcomes = yield from _all(reader, [run_job(reader.desk, job) for job in jobs])
        output = merge(_settled(plan, outcomes), _whole_document(plan))
    entries = [reader.desk.ledger.get(job.key) for job in jobs]
    output["debug"] = {**output.get("debug", {}), "client": _account(plan, entries)}
    for part in plan.parts:
        if part.kept:
            reader.desk.ledger.drop(part.digest)
    seconds = reader.desk.time.steady() - begun
    spent = sum(entry.execution_ms for entry in entries if entry)
    return Document.from_json(plan.name, msgspec.json.encode(output), seconds, spent)


def _all(reader: Reader, flows: Sequence[Flow[Any]]) -> Flow[list[Any]]:
    outcomes: list[Any] = yield Together(flows, reader.jobs_at_once)
    return outcomes


def _settled(plan: Plan, outcomes: Sequence[bytes | ClientError]) -> list[PartResult]:
    """What each part brought. A failure of the worker costs its pages, anything else is raised: calling again helps."""
    results = []
    for part, outcome in zip(plan.parts, _with_unsent(plan, outcomes), strict=True):
        if isinstance(outcome, JobFailed):
            results.append(PartResult(part, outcome.details.get("output"), outcome))
        elif isinstance(outcome, ClientError):
            raise outcome
        else:
            results.append(PartResult(part, msgspec.json.decode(outcome)))
    if all(result.failure for result in results):
        assert results[0].failure is not None
        raise results[0].failure
    return results


def _with_unsent(plan: Plan, outcomes: Sequence[bytes | ClientError]) -> list[bytes | ClientError]:
    """An outcome for every part: those that nothing carries were no jobs."""
    sent = iter(outcomes)
    return [
        JobFailed(part.why, worker_code=TooLarge.code) if part.carry is Carry.NONE else next(sent)
        for part in plan.parts
    ]


def _whole_document(plan: Plan) -> JsonObject:
    return {
        "sha256": plan.digest,
        "size": plan.size,
        "page_count": plan.page_count,
        "content_key": plan.content_key,
        "filename": plan.name,
    }


def _account(plan: Plan, entries: Sequence[Entry | None]) -> JsonObject:
    return {
        "transport": [msgspec.to_builtins(step) for step in plan.steps],
        "jobs": [
            {"id": entry.job_id, "runs": entry.total_runs, "execution_ms": entry.execution_ms}
            for entry in entries
            if entry is not None
        ],
    }


def _jobs(reader: Reader, plan: Plan, options: Options, source: Source | None) -> list[Job]:
    upload = _Upload(reader.uploader)
    return [_job(reader, plan, part, options, source, upload) for part in plan.sent]


def _job(reader: Reader, plan: Plan, part: Part, options: Options, source: Source | None, upload: "_Upload") -> Job:
    wire = msgspec.structs.replace(options, pages=part.pages).wire() | {"filename": plan.name}
    pages = len(part.covers) or (plan.page_count if part.pages is None else None)
    return Job(
        key=reader.key(part.content_key),
        content_key=part.content_key,
        name=plan.name,
        policy=policy(pages),
        body=_body(reader, plan, part, source, upload, wire),
    )


def _body(
    reader: Reader, plan: Plan, part: Part, source: Source | None, upload: "_Upload", wire: JsonObject
) -> Callable[[], JsonObject]:
    def make() -> JsonObject:
        if part.carry is Carry.URL and source is not None:
            return {"file_url": source.url} | wire
        data = reader.desk.ledger.load(part.digest) if part.kept else (source.data if source else None)
        if data is None:
            raise SourceError(f"{plan.name} must be given again to be sent again: call parse")
        if part.carry is Carry.UPLOAD:
            return upload.once(plan.name, data, part.digest) | wire
        return inline(gzipped(data) if part.carry is Carry.GZIP else data) | wire

    return make


@dataclass(slots=True)
class _Upload:
    """One upload for all jobs of a document."""

    uploader: RemoteStorage | None
    _keys: dict[str, JsonObject] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def once(self, name: str, data: bytes, digest: str) -> JsonObject:
        if self.uploader is None:
            raise ConfigError("the document was to be uploaded, but no storage is configured any more")
        with self._lock:
            if digest not in self._keys:
                self._keys[digest] = self.uploader.upload(name, data, digest)
            return self._keys[digest]
