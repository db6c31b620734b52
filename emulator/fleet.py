"""The workers of the endpoint as the platform sees them: who polled, who pinged, who must stop what."""

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from emulator.clock import Clock
from emulator.jobs import Job
from emulator.limits import Limits
from emulator.queue import JobQueue


class WorkerState(StrEnum):
    """Where a worker is in its life."""

    INITIALIZING = "initializing"
    READY = "ready"
    STOPPING = "stopping"
    GONE = "gone"


@dataclass(slots=True)
class Worker:
    """One worker, whoever started it. Times are the emulator clock's."""

    id: str
    started_at: float
    state: WorkerState = WorkerState.INITIALIZING
    idle_since: float | None = None
    last_ping: float | None = None
    pings: int = 0
    pinged_jobs: tuple[str, ...] = ()
    unhealthy_reason: str | None = None
    stop_signals: list[str] = field(default_factory=list)
    wants_refresh: bool = False
    """A result came with `stopPod`: the platform replaces this worker."""

    @property
    def alive(self) -> bool:
        """It may still finish jobs."""
        return self.state is not WorkerState.GONE


class Fleet:
    """All workers that were ever given the means to speak to this endpoint."""

    def __init__(self, clock: Clock, limits: Limits, queue: JobQueue) -> None:
        self._clock = clock
        self._limits = limits
        self._queue = queue
        self._workers: dict[str, Worker] = {}
        self.changed = queue.changed
        self.on_refresh: list[Callable[[Worker], None]] = []
        queue.on_stop.append(self._signal_stop)

    def enlist(self, worker_id: str | None = None) -> Worker:
        """A new worker, or one that comes back under its id."""
        worker_id = worker_id or secrets.token_hex(7)
        worker = Worker(worker_id, self._clock.now())
        self._workers[worker_id] = worker
        self.changed.notify()
        return worker

    def get(self, worker_id: str) -> Worker | None:
        """The worker of that id, if it was ever enlisted."""
        return self._workers.get(worker_id)

    def workers(self) -> list[Worker]:
        """All, in the order they came; also those that are gone."""
        return list(self._workers.values())

    def polled(self, worker: Worker) -> None:
        """The worker asks for a job: it has booted, or was only thought dead."""
        if worker.state in (WorkerState.INITIALIZING, WorkerState.GONE):
            worker.state = WorkerState.READY
            worker.idle_since = self._clock.now()
            self.changed.notify()

    def pinged(self, worker: Worker, job_ids: tuple[str, ...], reason: str | None) -> None:
        """A heartbeat, or the report of a failed fitness check."""
        worker.last_ping = self._clock.now()
        worker.pings += 1
        worker.pinged_jobs = job_ids
        worker.unhealthy_reason = reason or worker.unhealthy_reason

    def busy(self, worker: Worker) -> bool:
        """It has jobs in progress."""
        return bool(self._queue.running(worker.id))

    def note_idle(self, worker: Worker) -> None:
        """Start or stop counting its idle time."""
        if self.busy(worker):
            worker.idle_since = None
        elif worker.idle_since is None and worker.state is WorkerState.READY:
            worker.idle_since = self._clock.now()
            self.changed.notify()

    def refresh(self, worker: Worker) -> None:
        """Its result said `stopPod`."""
        worker.wants_refresh = True
        for listener in self.on_refresh:
            listener(worker)
        self.changed.notify()

    def stopping(self, worker: Worker) -> None:
        """It gets no more jobs."""
        worker.state = WorkerState.STOPPING
        self.changed.notify()

    def gone(self, worker: Worker) -> None:
        """Its process has ended: whatever it had goes back to the queue."""
        if not worker.alive:
            return
        worker.state = WorkerState.GONE
        self._queue.requeue(self._queue.running(worker.id))
        self.changed.notify()

    def expire(self) -> None:
        """Workers that pinged once and fell silent are taken for dead."""
        for worker in self._workers.values():
            if self._silent_at(worker) <= self._clock.now():
                self.gone(worker)

    def next_deadline(self) -> float:
        """When the next worker will have been silent for too long."""
        return min((self._silent_at(worker) for worker in self._workers.values()), default=math.inf)

    def forgive(self, seconds: float) -> None:
        """Time is skipped: nobody is to be taken for silent or idle because of it."""
        for worker in self._workers.values():
            if worker.last_ping is not None:
                worker.last_ping += seconds
            if worker.idle_since is not None:
                worker.idle_since += seconds

    def take_stop_signals(self, worker: Worker) -> list[str] | None:
        """Ids of jobs it must stop, each told once; None when there are none."""
        signals, worker.stop_signals = worker.stop_signals, []
        return signals or None

    def _signal_stop(self, job: Job) -> None:
        worker = self._workers.get(job.worker_id or "")
        if worker is not None:
            worker.stop_signals.append(job.id)
            self.changed.notify()

    def _silent_at(self, worker: Worker) -> float:
        if not worker.alive or worker.last_ping is None:
            return math.inf
        return worker.last_ping + self._limits.ping_timeout_s
