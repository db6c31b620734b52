"""The emulator as a whole: one endpoint on an address of this machine."""

import asyncio
import math
import secrets
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiohttp import web

from emulator.admin_api import AdminApi
from emulator.autoscaler import Autoscaler, Scaling
from emulator.clock import Clock, Signal, SystemClock, wait_for
from emulator.faults import FaultPlan, inflict
from emulator.fleet import Fleet, Worker
from emulator.jobs import BadRequest, Job
from emulator.limits import Limits, RateLimiter
from emulator.processes import WorkerCommand
from emulator.public_api import PublicApi
from emulator.queue import JobQueue, QueueFull, UnknownJob
from emulator.responder import Answer, respond
from emulator.webhooks import Webhooks
from emulator.worker_api import WorkerApi

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Emulator:
    """`async with Emulator() as e:` serves until the block ends, and stops every worker it started.

    `command` and `scaling` make it run worker processes of its own; without, workers started elsewhere take jobs
    with the environment that `worker_env` gives.
    """

    def __init__(
        self,
        *,
        endpoint: str = "local",
        api_key: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
        limits: Limits | None = None,
        command: WorkerCommand | None = None,
        scaling: Scaling | None = None,
        late_progress_hides_result: bool = False,
    ) -> None:
        self.endpoint = endpoint
        self.api_key = api_key or secrets.token_urlsafe(24)
        self.clock = clock or SystemClock()
        self.limits = limits or Limits()
        self.faults = FaultPlan()
        self.queue = JobQueue(self.clock, self.limits)
        self.fleet = Fleet(self.clock, self.limits, self.queue)
        self.requests: Counter[str] = Counter()
        """Requests seen per operation, whatever became of them."""
        self.traffic = Signal()
        """Notified when a request comes in and when it has been answered."""
        self.open_requests: Counter[str] = Counter()
        """Requests being handled now, per operation; long polls among them."""
        self._host, self._port = host, port
        self._rates = RateLimiter(self.limits.rates)
        self._public = PublicApi(self.queue, self.fleet, self.limits, self.clock)
        self._workers = WorkerApi(
            self.queue,
            self.fleet,
            self.limits,
            self.clock,
            self.faults,
            late_progress_hides_result=late_progress_hides_result,
        )
        self._admin = AdminApi(self)
        self._webhooks = Webhooks(self.clock)
        self.queue.on_final.append(self._webhooks.job_ended)
        self._ending = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self.autoscaler = (
            Autoscaler(command, scaling or Scaling(), self.queue, self.fleet, self.clock, self.worker_env)
            if command
            else None
        )
        if self.autoscaler:
            self._public.max_workers = self.autoscaler.scaling.max_workers

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 30)
        tables = (
            (self._public.routes(), self._guard_public),
            (self._workers.routes(), self._guard),
            (self._admin.routes(), self._guard_key),
        )
        for routes, guard in tables:
            for operation, route in routes.items():
                app.router.add_route(route.method, route.path, guard(operation, route.handler))
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0)
        self._ending.push_async_callback(runner.cleanup)
        await runner.setup()
        await web.TCPSite(runner, self._host, self._port).start()
        self._port = runner.addresses[0][1]
        self._ending.push_async_callback(self._webhooks.close)
        if self.autoscaler:
            self._ending.push_async_callback(self.autoscaler.close)
            self._tasks.append(asyncio.create_task(self.autoscaler.run()))
        self._tasks.append(asyncio.create_task(self._keep_time()))
        self._ending.push_async_callback(self._end_tasks)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._ending.__aexit__(kind, error, trace)

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def base_url(self) -> str:
        """What the client takes as `RUNPOD_API_URL`, in the place of https://api.runpod.ai/v2."""
        return f"http://{self._host}:{self._port}/v2"

    @property
    def url(self) -> str:
        """The endpoint's own address, under which `/run` lies."""
        return f"{self.base_url}/{self.endpoint}"

    def worker_env(self, worker_id: str) -> dict[str, str]:
        """The environment that makes a worker, its id given, take jobs from here."""
        if self.fleet.get(worker_id) is None:
            self.fleet.enlist(worker_id)
        query = "?gpu=NVIDIA+Emulated"
        return {
            "RUNPOD_ENDPOINT_ID": self.endpoint,
            "RUNPOD_POD_ID": worker_id,
            "RUNPOD_POD_HOSTNAME": f"{worker_id}-emulated",
            "RUNPOD_AI_API_KEY": self.api_key,
            "RUNPOD_WEBHOOK_GET_JOB": f"{self.url}/job-take/$ID{query}",
            "RUNPOD_WEBHOOK_POST_OUTPUT": f"{self.url}/job-done/$RUNPOD_POD_ID/$ID{query}",
            "RUNPOD_WEBHOOK_POST_STREAM": f"{self.url}/job-stream/$RUNPOD_POD_ID/$ID{query}",
            "RUNPOD_WEBHOOK_PING": f"{self.url}/ping/$RUNPOD_POD_ID{query}",
            "RUNPOD_SKIP_AUTO_SYSTEM_CHECKS": "true",
            "RUNPOD_SKIP_GPU_CHECK": "true",
        }

    def jobs(self) -> list[Job]:
        """Every job ever submitted here, oldest first."""
        return list(self.queue.history)

    def workers(self) -> list[Worker]:
        """Every worker there ever was."""
        return self.fleet.workers()

    async def wait_job(self, job_id: str, timeout_s: float = 60.0) -> Job:
        """The job, once it has ended; `timeout_s` in real time. Raises `TimeoutError`."""
        job = self.queue.get(job_id)
        if await wait_for(SystemClock(), self.queue.changed, lambda: job.status.final or None, timeout_s) is None:
            raise TimeoutError(f"job {job_id} is {job.status} after {timeout_s:g} s")
        return job

    async def wait_ready(self, timeout_s: float = 60.0) -> None:
        """Until one of its own workers polls. Raises `WorkerBootFailed` or `TimeoutError`."""
        if self.autoscaler is None:
            raise RuntimeError("this emulator starts no workers")
        await self.autoscaler.wait_ready(timeout_s)

    async def skip(self, seconds: float) -> None:
        """Time passes at the endpoint, for its jobs and results; its workers ping all along."""
        self.fleet.forgive(seconds)
        await self.clock.advance(seconds)

    def answer(self, answer: Answer) -> asyncio.Task[None]:
        """Answer jobs inside this process, one at a time, until the emulator ends or the task is cancelled."""
        task = asyncio.create_task(respond(answer, self.queue, self.fleet, self.clock))
        self._tasks.append(task)
        return task

    async def kill_worker(self, worker_id: str, number: signal.Signals = signal.SIGKILL) -> None:
        """SIGKILL takes one of its own workers with everything in it; other signals go to the worker's process."""
        if self.autoscaler:
            await self.autoscaler.kill(worker_id, number)

    async def workers_failed(self) -> str:
        """Returns only when its workers do not boot and no more are started: why."""
        scaler = self.autoscaler
        failures = await wait_for(
            self.clock,
            self.queue.changed,
            lambda: scaler.boot_failures if scaler and scaler.failed else None,
            math.inf,
        )
        return "workers end before they ask for a job: " + ", ".join(f"{i} exit {code}" for i, code in failures or ())

    async def _keep_time(self) -> None:
        while True:
            changed = asyncio.create_task(self.queue.changed.wait())
            self.queue.expire()
            self.fleet.expire()
            deadline = min(self.queue.next_deadline(), self.fleet.next_deadline())
            timer = asyncio.create_task(self.clock.sleep(deadline - self.clock.now()))
            try:
                await asyncio.wait({changed, timer}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
                timer.cancel()

    def _guard_key(self, operation: str, handler: Handler) -> Handler:
        async def keyed(request: web.Request) -> web.StreamResponse:
            if request.headers.get("Authorization") not in (self.api_key, f"Bearer {self.api_key}"):
                return _error(401, "unauthorized")
            return await _with_errors(handler, request)

        return keyed

    def _guard_public(self, operation: str, handler: Handler) -> Handler:
        async def rated(request: web.Request) -> web.StreamResponse:
            if request.match_info["endpoint"] != self.endpoint:
                return _error(404, "endpoint not found")
            wait_s = self._rates.enter(operation, self.clock.now())
            if wait_s is not None:
                return _error(429, "too many requests", {"Retry-After": str(math.ceil(wait_s))})
            try:
                return await handler(request)
            finally:
                self._rates.leave(operation)

        return self._guard(operation, self._guard_key(operation, rated))

    def _guard(self, operation: str, handler: Handler) -> Handler:
        async def guarded(request: web.Request) -> web.StreamResponse:
            async def handle() -> web.StreamResponse:
                return await _with_errors(handler, request)

            self.requests[operation] += 1
            self.open_requests[operation] += 1
            self.traffic.notify()
            try:
                fault = self.faults.strike(operation, request.match_info.get("job", ""))
                return await inflict(fault, request, handle, self.clock) if fault else await handle()
            finally:
                self.open_requests[operation] -= 1
                self.traffic.notify()

        return guarded


async def _with_errors(handler: Handler, request: web.Request) -> web.StreamResponse:
    try:
        return await handler(request)
    except BadRequest as error:
        return _error(400, str(error))
    except UnknownJob:
        return _error(404, "job not found")
    except QueueFull:
        return _error(429, "too many jobs in the queue")


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.json_response({"error": message}, status=status, headers=headers)
