"""The queue of one endpoint: every transition a job can make. No I/O and no waiting in here."""

import itertools
import math
import secrets
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping

from emulator.clock import Clock, Signal
from emulator.jobs import BadRequest, Job, JobStatus, Json, Policy
from emulator.limits import Limits


class UnknownJob(Exception):
    """There is no such job, or no longer."""


class QueueFull(Exception):
    """More jobs wait than the platform accepts."""


class JobQueue:
    """Jobs from submission to oblivion. `changed` is notified after every transition."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock = clock
        self._limits = limits
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._numbers = itertools.count(1)
        self.changed = Signal()
        self.counts: Counter[str] = Counter()
        """completed, failed, retried, purged, expired, late_posts since the start."""
        self.history: list[Job] = []
        """Every job ever submitted, in order, also those the platform has forgotten."""
        self.on_final: list[Callable[[Job], None]] = []
        self.on_stop: list[Callable[[Job], None]] = []
        """Called when a running job must be stopped at its worker."""

    def submit(self, body: Json, *, sync: bool, max_workers: int, kept_for_s: float) -> Job:
        """Accept a job. Raises `BadRequest` or `QueueFull`."""
        if not isinstance(body, Mapping) or not isinstance(body.get("input"), Mapping):
            raise BadRequest('the request must be a JSON object with an object "input"')
        policy = Policy.parse(body.get("policy") or {}, self._limits)
        self.expire()
        if len(self._waiting) >= max(self._limits.queue_free_jobs, max_workers * self._limits.queue_jobs_per_worker):
            raise QueueFull
        now = self._clock.now()
        job_id = f"{'sync-' if sync else ''}{next(self._numbers):06d}-{secrets.token_hex(8)}-u1"
        job = Job(job_id, dict(body), policy, sync, submitted_at=now, queued_at=now, kept_for_s=kept_for_s)
        self._jobs[job.id] = job
        self.history.append(job)
        self._waiting.append(job)
        self.changed.notify()
        return job

    def get(self, job_id: str) -> Job:
        """The job. Raises `UnknownJob`."""
        self.expire()
        try:
            return self._jobs[job_id]
        except KeyError:
            raise UnknownJob(job_id) from None

    def jobs(self) -> list[Job]:
        """All jobs still known, oldest first."""
        self.expire()
        return list(self._jobs.values())

    def waiting(self) -> list[Job]:
        """Jobs in the queue, next one first."""
        self.expire()
        return list(self._waiting)

    def running(self, worker_id: str | None = None) -> list[Job]:
        """Jobs in progress, of one worker or of all."""
        return [
            job for job in self.jobs() if job.status is JobStatus.IN_PROGRESS and worker_id in (None, job.worker_id)
        ]

    def take(self, worker_id: str, count: int = 1) -> list[Job]:
        """Hand up to `count` jobs to a worker."""
        self.expire()
        taken: list[Job] = []
        while self._waiting and len(taken) < count:
            job = self._waiting.popleft()
            job.status = JobStatus.IN_PROGRESS
            job.taken_at = self._clock.now()
            job.worker_id = worker_id
            job.deliveries.append(worker_id)
            taken.append(job)
        if taken:
            self.changed.notify()
        return taken

    def finish(self, job: Job, posted: Mapping[str, Json]) -> None:
        """A worker's result. The first one counts; later ones and those of a job already ended are ignored."""
        if job.status.final:
            self.counts["late_posts"] += 1
            return
        if "output" in posted:
            job.output, job.has_output = posted["output"], True
        error = posted.get("error")
        if error:
            job.error = error
        self._end(job, JobStatus.FAILED if error else JobStatus.COMPLETED)

    def refuse(self, job: Job, why: str) -> None:
        """A result that the platform does not accept: the job is shown as completed, without output."""
        job.refused_posts.append(why)
        if not job.status.final:
            job.output, job.has_output = None, False
            self._end(job, JobStatus.COMPLETED)

    def progress(self, job: Job, output: Json, *, may_overwrite: bool) -> None:
        """Progress shown as output. After the end it is ignored, or hides the result as users reported."""
        job.progress_posts.append(output)
        if job.status.final:
            self.counts["late_posts"] += 1
            if not may_overwrite:
                return
            job.status, job.finished_at = JobStatus.IN_PROGRESS, None
        job.output, job.has_output = output, True
        self.changed.notify()

    def stream(self, job: Job, chunk: Json) -> None:
        """One chunk of a generator handler."""
        job.chunks.append(chunk)
        self.changed.notify()

    def drain(self, job: Job) -> list[Json]:
        """The chunks nobody has fetched yet."""
        chunks, job.chunks = job.chunks, []
        return chunks

    def cancel(self, job: Job) -> None:
        """Cancel unless it has ended; a running job is stopped at its worker."""
        if job.status.final:
            return
        self._leave_queue(job)
        self._stop(job)
        self._end(job, JobStatus.CANCELLED)

    def retry(self, job: Job) -> None:
        """Queue a failed or timed-out job again, its output gone. Raises `BadRequest` in any other state."""
        if job.status not in (JobStatus.FAILED, JobStatus.TIMED_OUT):
            raise BadRequest(f"only FAILED or TIMED_OUT jobs can be retried, this one is {job.status}")
        job.caller_retries += 1
        self.counts["retried"] += 1
        self._queue_again(job, first=False)

    def purge(self) -> int:
        """Remove everything that waits; how much that was."""
        self.expire()
        purged = list(self._waiting)
        self._waiting.clear()
        for job in purged:
            self._end(job, JobStatus.CANCELLED)
        self.counts["purged"] += len(purged)
        return len(purged)

    def requeue(self, jobs: Iterable[Job]) -> None:
        """Put running jobs back in front of the queue because their worker is lost."""
        for job in jobs:
            if job.status is JobStatus.IN_PROGRESS:
                job.requeues += 1
                self.counts["retried"] += 1
                self._queue_again(job, first=True)

    def shorten(self, job: Job, ttl_s: float) -> None:
        """`/status?ttl=`: forget the job that long from now."""
        job.forget_at = min(job.forget_at, self._clock.now() + ttl_s)

    def expire(self) -> None:
        """Time out and forget what is due."""
        now = self._clock.now()
        for job in list(self._jobs.values()):
            if job.expires_at() <= now:
                self._leave_queue(job)
                self._stop(job)
                del self._jobs[job.id]
                self.counts["expired"] += 1
                self.changed.notify()
            elif job.times_out_at() <= now:
                self._stop(job)
                self._end(job, JobStatus.TIMED_OUT)

    def next_deadline(self) -> float:
        """When `expire` will next have something to do; infinite when it never will."""
        return min((min(job.expires_at(), job.times_out_at()) for job in self._jobs.values()), default=math.inf)

    def _queue_again(self, job: Job, *, first: bool) -> None:
        job.status = JobStatus.IN_QUEUE
        job.queued_at = self._clock.now()
        job.taken_at = job.finished_at = job.worker_id = None
        job.output, job.has_output, job.error = None, False, None
        job.chunks.clear()
        if first:
            self._waiting.appendleft(job)
        else:
            self._waiting.append(job)
        self.changed.notify()

    def _leave_queue(self, job: Job) -> None:
        if job.status is JobStatus.IN_QUEUE:
            self._waiting.remove(job)

    def _stop(self, job: Job) -> None:
        if job.status is JobStatus.IN_PROGRESS:
            for listener in self.on_stop:
                listener(job)

    def _end(self, job: Job, status: JobStatus) -> None:
        job.status = status
        job.finished_at = self._clock.now()
        self.counts[status.value.lower()] += 1
        self.changed.notify()
        for listener in self.on_final:
            listener(job)
