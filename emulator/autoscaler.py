"""Starts and stops worker processes the way the platform scales an endpoint."""

import asyncio
import math
import signal
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum

from emulator.clock import Clock, SystemClock, wait_for
from emulator.fleet import Fleet, Worker, WorkerState
from emulator.processes import WorkerCommand, WorkerProcess
from emulator.queue import JobQueue


class ScalerType(StrEnum):
    """What makes the endpoint grow."""

    QUEUE_DELAY = "queue_delay"
    """One more worker while a job has waited longer than `scaler_value` seconds."""
    REQUEST_COUNT = "request_count"
    """One worker per `scaler_value` jobs in queue and in progress, rounded up."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The endpoint's scaling settings, with the platform's defaults."""

    min_workers: int = 0
    max_workers: int = 3
    scaler: ScalerType = ScalerType.QUEUE_DELAY
    scaler_value: float = 4.0
    idle_timeout_s: float = 5.0
    max_boot_failures: int = 3
    """After so many workers in a row that ended before their first poll, no more are started."""


class WorkerBootFailed(RuntimeError):
    """Workers end before they ask for their first job."""


class Autoscaler:
    """Owns the worker processes: none outlives `close`."""

    def __init__(
        self,
        command: WorkerCommand,
        scaling: Scaling,
        queue: JobQueue,
        fleet: Fleet,
        clock: Clock,
        env: Callable[[str], Mapping[str, str]],
    ) -> None:
        self.scaling = scaling
        self.boot_failures: list[tuple[str, int]] = []
        """Worker id and exit status of those in a row that ended before their first poll."""
        self._command = command
        self._queue = queue
        self._fleet = fleet
        self._clock = clock
        self._env = env
        self._processes: dict[str, WorkerProcess] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        fleet.on_refresh.append(self._retire)

    @property
    def processes(self) -> list[WorkerProcess]:
        """The processes now running."""
        return list(self._processes.values())

    @property
    def failed(self) -> bool:
        """It has given up because workers do not boot."""
        return len(self.boot_failures) >= self.scaling.max_boot_failures

    async def run(self) -> None:
        """Adjust the number of workers until cancelled."""
        while not self.failed:
            await self._adjust()
            await self._clock.sleep(1.0)

    async def close(self) -> None:
        """Stop every worker, all at once; kill them when that is cancelled."""
        self._closing = True
        for worker in self._owned():
            self._fleet.stopping(worker)
        try:
            await asyncio.gather(*(process.stop() for process in self.processes))
        except asyncio.CancelledError:
            for process in self.processes:
                process.kill_members()
            raise
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_ready(self, timeout_s: float) -> None:
        """Until one worker has polled, in real time. Raises `WorkerBootFailed` or `TimeoutError`."""

        def settled() -> bool | None:
            ready = any(worker.state is WorkerState.READY for worker in self._fleet.workers())
            return True if ready or self.failed else None

        if await wait_for(SystemClock(), self._fleet.changed, settled, timeout_s) is None:
            raise TimeoutError(f"no worker became ready within {timeout_s:g} s")
        if self.failed:
            raise WorkerBootFailed(", ".join(f"{name}: exit status {code}" for name, code in self.boot_failures))

    async def kill(self, worker_id: str, number: signal.Signals = signal.SIGKILL) -> None:
        """SIGKILL: the container is gone. Any other signal: to the worker's own process."""
        process = self._processes.get(worker_id)
        if process is None:
            return
        if number is signal.SIGKILL:
            await process.kill()
        else:
            process.signal(number)

    async def _adjust(self) -> None:
        self._fleet.expire()
        for worker in self._owned():
            if not worker.alive:
                await self.kill(worker.id)
        present = [worker for worker in self._owned() if worker.state in (WorkerState.INITIALIZING, WorkerState.READY)]
        wanted = min(max(self._wanted(present), self.scaling.min_workers), self.scaling.max_workers)
        for _ in range(wanted - len(present)):
            await self._spawn()
        surplus = len(present) - max(self.scaling.min_workers, min(wanted, len(present)))
        for worker in present:
            if surplus <= 0:
                break
            if self._idle_too_long(worker):
                self._retire(worker)
                surplus -= 1

    def _wanted(self, present: list[Worker]) -> int:
        waiting = [job for job in self._queue.waiting() if not job.policy.low_priority]
        if self.scaling.scaler is ScalerType.REQUEST_COUNT:
            return math.ceil((len(waiting) + len(self._queue.running())) / self.scaling.scaler_value)
        busy = sum(self._fleet.busy(worker) for worker in present)
        booting = sum(worker.state is WorkerState.INITIALIZING for worker in present)
        overdue = [j for j in waiting if self._clock.now() - j.queued_at > self.scaling.scaler_value]
        return len(present) + 1 if len(overdue) > booting else busy + booting

    def _idle_too_long(self, worker: Worker) -> bool:
        self._fleet.note_idle(worker)
        return worker.idle_since is not None and self._clock.now() - worker.idle_since >= self.scaling.idle_timeout_s

    def _owned(self) -> list[Worker]:
        return [worker for worker in self._fleet.workers() if worker.id in self._processes]

    async def _spawn(self) -> None:
        worker = self._fleet.enlist()
        process = await WorkerProcess.start(self._command, worker.id, self._env(worker.id))
        self._processes[worker.id] = process
        self._fleet.changed.notify()
        self._keep(self._watch(worker, process))

    async def _watch(self, worker: Worker, process: WorkerProcess) -> None:
        code = await process.wait()
        booted = worker.state is not WorkerState.INITIALIZING
        await process.kill()
        del self._processes[worker.id]
        if booted or self._closing:
            self.boot_failures.clear()
        else:
            self.boot_failures.append((worker.id, code))
        self._fleet.gone(worker)

    def _retire(self, worker: Worker) -> None:
        process = self._processes.get(worker.id)
        if process is not None and worker.state is not WorkerState.STOPPING:
            self._fleet.stopping(worker)
            self._keep(self._stop(process))

    async def _stop(self, process: WorkerProcess) -> None:
        await process.stop()

    def _keep(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
