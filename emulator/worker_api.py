"""What workers see: the webhooks that the RunPod SDK (1.12.0) polls and posts to.

A worker is known by its id, which only `Fleet.enlist` gives out: whoever has it is that worker.
"""

import asyncio
from collections.abc import Mapping

from aiohttp import web

from emulator.clock import Clock, wait_for
from emulator.faults import FaultKind, FaultPlan, inflict
from emulator.fleet import Fleet, Worker, WorkerState
from emulator.jobs import BadRequest, Job, Json
from emulator.limits import Limits
from emulator.public_api import strict_json
from emulator.queue import JobQueue


class WorkerApi:
    """The handlers of the worker-side operations."""

    def __init__(
        self,
        queue: JobQueue,
        fleet: Fleet,
        limits: Limits,
        clock: Clock,
        faults: FaultPlan,
        *,
        late_progress_hides_result: bool,
    ) -> None:
        self._queue = queue
        self._fleet = fleet
        self._limits = limits
        self._clock = clock
        self._faults = faults
        self._late_progress_hides_result = late_progress_hides_result

    def routes(self) -> Mapping[str, web.RouteDef]:
        """Operation name -> route."""
        return {
            "job-take": web.get("/v2/{endpoint}/job-take/{worker}", self.take),
            "job-take-batch": web.get("/v2/{endpoint}/job-take-batch/{worker}", self.take_batch),
            "job-stop": web.get("/v2/{endpoint}/job-stop/{worker}", self.stop_signals),
            "job-done": web.post("/v2/{endpoint}/job-done/{worker}/{job}", self.done),
            "job-stream": web.post("/v2/{endpoint}/job-stream/{worker}/{job}", self.chunk),
            "ping": web.get("/v2/{endpoint}/ping/{worker}", self.ping),
        }

    async def take(self, request: web.Request) -> web.Response:
        """One job, or 204 after the long poll."""
        jobs = await self._take(self._worker(request), 1)
        return web.json_response(jobs[0].for_worker()) if jobs else web.Response(status=204)

    async def take_batch(self, request: web.Request) -> web.Response:
        """Up to `batch_size` jobs, or 204 after the long poll."""
        try:
            count = max(1, int(request.query.get("batch_size", "1")))
        except ValueError:
            raise BadRequest("batch_size must be a number") from None
        jobs = await self._take(self._worker(request), count)
        return web.json_response([job.for_worker() for job in jobs]) if jobs else web.Response(status=204)

    async def stop_signals(self, request: web.Request) -> web.Response:
        """The jobs to stop, or 204 after the long poll."""
        worker = self._worker(request)
        ids = await wait_for(
            self._clock,
            self._fleet.changed,
            lambda: self._fleet.take_stop_signals(worker) or ([] if _leaving(worker) else None),
            self._limits.long_poll_s,
        )
        return web.json_response({"jobsToStop": ids}) if ids else web.Response(status=204)

    async def done(self, request: web.Request) -> web.StreamResponse:
        """A result, or progress: the SDK posts both to the same address."""
        worker, job, data = self._worker(request), self._queue.get(request.match_info["job"]), await request.read()
        try:
            posted = _object(strict_json(data))
        except BadRequest as error:
            self._queue.refuse(job, str(error))
            raise
        is_progress = posted.get("status") == "IN_PROGRESS"

        async def handle() -> web.StreamResponse:
            if is_progress:
                self._queue.progress(job, posted.get("output"), may_overwrite=self._late_progress_hides_result)
                return web.json_response({})
            return self._finish(worker, job, posted, len(data))

        fault = self._faults.strike("progress" if is_progress else "result", job.id)
        if fault is None:
            return await handle()
        if fault.kind is FaultKind.REFUSE_RESULT:
            self._queue.refuse(job, "injected")
            raise BadRequest("injected refusal")
        # What has arrived is processed in the end, whether or not its sender still waits for the answer.
        return await asyncio.shield(inflict(fault, request, handle, self._clock))

    async def chunk(self, request: web.Request) -> web.Response:
        """One chunk of a generator handler."""
        self._worker(request)
        job = self._queue.get(request.match_info["job"])
        self._queue.stream(job, _object(strict_json(await request.read())).get("output"))
        return web.json_response({})

    async def ping(self, request: web.Request) -> web.Response:
        """The heartbeat with the jobs in progress, or the report of a failed fitness check."""
        jobs = tuple(filter(None, request.query.get("job_id", "").split(",")))
        unhealthy = request.query.get("status") == "unhealthy"
        reason = f"{request.query.get('check')}: {request.query.get('reason')}" if unhealthy else None
        self._fleet.pinged(self._worker(request), jobs, reason)
        return web.json_response({})

    async def _take(self, worker: Worker, count: int) -> list[Job]:
        self._fleet.polled(worker)
        jobs = await wait_for(
            self._clock,
            self._queue.changed,
            lambda: [] if _leaving(worker) else self._queue.take(worker.id, count) or None,
            self._limits.long_poll_s,
        )
        self._fleet.note_idle(worker)
        return jobs or []

    def _finish(self, worker: Worker, job: Job, posted: Mapping[str, Json], size: int) -> web.Response:
        limit = self._limits.runsync_result if job.sync else self._limits.run_result
        if job.refused_posts or size > limit:
            self._queue.refuse(job, f"{size} bytes")
            raise BadRequest(f"result of {size} bytes refused, limit {limit}")
        self._queue.finish(job, posted)
        self._fleet.note_idle(worker)
        if posted.get("stopPod"):
            self._fleet.refresh(worker)
        return web.json_response({})

    def _worker(self, request: web.Request) -> Worker:
        worker = self._fleet.get(request.match_info["worker"])
        if worker is None:
            raise web.HTTPUnauthorized(text="unknown worker")
        return worker


def _leaving(worker: Worker) -> bool:
    """It gets nothing more, not even through a poll that it left open."""
    return worker.state in (WorkerState.STOPPING, WorkerState.GONE)


def _object(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise BadRequest("the posted body must be a JSON object")
    return value
