"""The RunPod handler, and the one error boundary: whatever happens in a job comes back in that job.

An error is returned as `{"error": "<JSON of ErrorInfo>", "debug": ...}`: the SDK keeps the rest of the dict as the
job's output, so debug data travel with a failure. `refresh_worker` asks the platform for a new worker when this one
is unfit. Nothing is raised but cancellation, which the SDK expects to see.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from handler.debug import DebugReport
from handler.errors import NoPageReadable, WorkerError
from handler.job_input import parse_input
from handler.jobs import DocumentOutcome, DocumentReader, refuse_reserved
from handler.logs import job_context
from handler.progress import ProgressMeter, ProgressReporter, ProgressSender
from handler.redaction import Redactor
from handler.results.delivery import Deliverer
from handler.results.encoding import clean
from handler.schema import DocumentStatus, ErrorInfo, JobInput, JobOutput, JsonValue
from handler.stages import Stage, Stages
from handler.volume import Housekeeper

log = logging.getLogger(__name__)

ProgressSenderFactory = Callable[[Mapping[str, Any]], ProgressSender]


@dataclass(frozen=True)
class Worker:
    """Answers jobs. One per process, any number of jobs at once."""

    documents: DocumentReader
    deliverer: Deliverer
    debug: DebugReport
    progress_to: ProgressSenderFactory
    golden_page: Callable[[], Awaitable[None]]
    housekeeper: Housekeeper
    declare_unfit: Callable[[], None]
    """Makes the SDK itself stop taking jobs; `refresh_worker` in one answer only asks for the pod to be stopped."""

    async def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one job of the platform: `event` has `id` and `input`."""
        job_id = str(event.get("id", "local"))
        stages = Stages()
        with job_context(job_id):
            try:
                return await self._answer(event, job_id, stages)
            except WorkerError as error:
                log.warning("job failed: %s: %s", error.code, error.message)
                return self._failure(error, job_id, stages)
            except Exception:
                log.exception("job failed unforeseen")
                return self._failure(WorkerError(), job_id, stages)
            finally:
                self.debug.forget(job_id)
                self.housekeeper.tidy()

    async def _answer(self, event: Mapping[str, Any], job_id: str, stages: Stages) -> dict[str, Any]:
        job = parse_input(event.get("input"))
        refuse_reserved(job)
        self.deliverer.refuse_impossible(job.transport)
        if job.warmup or job.probe:
            return await self._answer_without_document(job, job_id, stages)
        meter = ProgressMeter()
        async with ProgressReporter(meter, self.progress_to(event), self.debug.engine_load):
            outcome = await self.documents.read(job, job_id, meter, stages)
            output = outcome.output.model_copy(update={"debug": self._debug(job_id, stages, outcome)})
            with stages.measure(Stage.DELIVER):
                value = await self.deliverer.deliver(output, outcome.figures, job.transport)
        log.info("job done", extra={"fields": {"status": output.status, "seconds": round(stages.wall, 2)}})
        if output.status is DocumentStatus.FAILED:
            return {**value, "error": _as_text(_nothing_readable(output))}
        return value

    async def _answer_without_document(self, job: JobInput, job_id: str, stages: Stages) -> dict[str, Any]:
        if job.warmup:
            with stages.measure(Stage.RECOGNISE):
                await self.golden_page()
        output = JobOutput(
            status=DocumentStatus.COMPLETE,
            produced_by=self.documents.produced_by,
            idempotency_key=job.idempotency_key,
            debug=self.debug.of(job_id, stages),
        )
        return await self.deliverer.deliver(output, (), job.transport)

    def _debug(self, job_id: str, stages: Stages, outcome: DocumentOutcome) -> dict[str, JsonValue]:
        resumed: dict[str, JsonValue] = {"deaths": outcome.deaths, "resumed_pages": outcome.resumed_pages}
        return {**self.debug.of(job_id, stages), "checkpoint": resumed}

    def _failure(self, error: WorkerError, job_id: str, stages: Stages) -> dict[str, Any]:
        answer: dict[str, Any] = {"error": _as_text(error.info()), "debug": self.debug.of(job_id, stages)}
        if error.worker_unfit:
            self.declare_unfit()
            answer["refresh_worker"] = True
        return answer


def _as_text(info: ErrorInfo) -> str:
    """The platform shows `error` as text; ours is JSON in ASCII without lone surrogates: nothing can refuse it."""
    return Redactor()(json.dumps(clean(info.model_dump())))


def _nothing_readable(output: JobOutput) -> ErrorInfo:
    reasons: list[JsonValue] = [
        f"page {item.page}: {item.reason}: {item.message}" for item in output.degraded.items[:5]
    ]
    return NoPageReadable(pages=output.counts.pages.requested, reasons=reasons).info()
