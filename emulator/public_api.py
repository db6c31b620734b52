"""What callers see: `/v2/{endpoint}/...` with a bearer key."""

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from emulator.clock import Clock, wait_for
from emulator.fleet import Fleet, WorkerState
from emulator.jobs import BadRequest, Job, Json
from emulator.limits import Limits
from emulator.queue import JobQueue


class PublicApi:
    """The handlers of the public operations."""

    def __init__(self, queue: JobQueue, fleet: Fleet, limits: Limits, clock: Clock) -> None:
        self._queue = queue
        self._fleet = fleet
        self._limits = limits
        self._clock = clock
        self.max_workers = 3
        """Of the endpoint; the longest queue accepted depends on it."""

    def routes(self) -> Mapping[str, web.RouteDef]:
        """Operation name -> route."""
        return {
            "run": web.post("/v2/{endpoint}/run", self.run),
            "runsync": web.post("/v2/{endpoint}/runsync", self.runsync),
            "status": web.get("/v2/{endpoint}/status/{job}", self.status),
            "stream": web.get("/v2/{endpoint}/stream/{job}", self.stream),
            "cancel": web.post("/v2/{endpoint}/cancel/{job}", self.cancel),
            "retry": web.post("/v2/{endpoint}/retry/{job}", self.retry),
            "purge-queue": web.post("/v2/{endpoint}/purge-queue", self.purge),
            "health": web.get("/v2/{endpoint}/health", self.health),
        }

    async def run(self, request: web.Request) -> web.Response:
        """Queue a job and return at once."""
        body = await read_json(request, self._limits.run_body)
        job = self._queue.submit(
            body, sync=False, max_workers=self.max_workers, kept_for_s=self._limits.run_retention_s
        )
        return web.json_response({"id": job.id, "status": job.status})

    async def runsync(self, request: web.Request) -> web.Response:
        """Queue a job and wait for its end, at most `?wait=` milliseconds."""
        wait_s = _milliseconds(request, "wait", self._limits.runsync_wait_s)
        wait_s = min(max(wait_s, 1.0), self._limits.runsync_wait_max_s)
        body = await read_json(request, self._limits.runsync_body)
        job = self._queue.submit(
            body, sync=True, max_workers=self.max_workers, kept_for_s=self._limits.runsync_retention_s
        )
        await wait_for(self._clock, self._queue.changed, lambda: job.status.final or None, wait_s)
        return web.json_response(job.view(self._clock.now()))

    async def status(self, request: web.Request) -> web.Response:
        """The job as it stands; `?ttl=` milliseconds shortens its life."""
        job = self._job(request)
        if "ttl" in request.query:
            self._queue.shorten(job, _milliseconds(request, "ttl", self._limits.ttl_s))
        return web.json_response(job.view(self._clock.now()))

    async def stream(self, request: web.Request) -> web.Response:
        """The chunks not fetched yet, and the state."""
        job = self._job(request)
        return web.json_response({"status": job.status, "stream": [{"output": c} for c in self._queue.drain(job)]})

    async def cancel(self, request: web.Request) -> web.Response:
        """Cancel; a job that has ended keeps its state."""
        job = self._job(request)
        self._queue.cancel(job)
        return web.json_response({"id": job.id, "status": job.status})

    async def retry(self, request: web.Request) -> web.Response:
        """Queue a failed or timed-out job again."""
        job = self._job(request)
        self._queue.retry(job)
        return web.json_response({"id": job.id, "status": job.status})

    async def purge(self, request: web.Request) -> web.Response:
        """Empty the queue."""
        return web.json_response({"removed": self._queue.purge(), "status": "completed"})

    async def health(self, request: web.Request) -> web.Response:
        """Jobs and workers in numbers."""
        workers = [worker for worker in self._fleet.workers() if worker.alive]
        ready = [worker for worker in workers if worker.state is WorkerState.READY]
        running = sum(self._fleet.busy(worker) for worker in workers)
        counts = self._queue.counts
        return web.json_response(
            {
                "jobs": {
                    "completed": counts["completed"],
                    "failed": counts["failed"] + counts["timed_out"],
                    "inProgress": len(self._queue.running()),
                    "inQueue": len(self._queue.waiting()),
                    "retried": counts["retried"],
                },
                "workers": {
                    "idle": sum(not self._fleet.busy(worker) for worker in ready),
                    "initializing": sum(worker.state is WorkerState.INITIALIZING for worker in workers),
                    "ready": len(ready),
                    "running": running,
                    "throttled": 0,
                    "unhealthy": sum(worker.unhealthy_reason is not None for worker in workers),
                },
            }
        )

    def _job(self, request: web.Request) -> Job:
        return self._queue.get(request.match_info["job"])


async def read_json(request: web.Request, limit: int) -> Json:
    """The body as JSON. Raises `BadRequest` beyond `limit` bytes or when it is not JSON."""
    if (request.content_length or 0) > limit:
        raise BadRequest(f"request body exceeds {limit} bytes")
    received = bytearray()
    async for chunk in request.content.iter_chunked(1 << 16):
        received += chunk
        if len(received) > limit:
            raise BadRequest(f"request body exceeds {limit} bytes")
    return strict_json(bytes(received))


def strict_json(data: bytes) -> Json:
    """RFC 8259 JSON in UTF-8: no NaN, no lone surrogates. Raises `BadRequest`."""
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"not valid JSON: {error}") from error
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _milliseconds(request: web.Request, name: str, default_s: float) -> float:
    try:
        return int(request.query[name]) / 1000 if name in request.query else default_s
    except ValueError:
        raise BadRequest(f"{name} must be a number of milliseconds") from None
