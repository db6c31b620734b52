"""What travels in every answer's `debug`, because operators can hardly read a worker's log."""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping

from handler.engine.api import EngineLoad
from handler.logs import JsonFormatter, current_job
from handler.schema import JsonValue
from handler.stages import Stages

LINES_PER_JOB = 40
BOOT_LINES = 60
JOBS_REMEMBERED = 512


class JobLines(logging.Handler):
    """The last log lines of each running job, and of the boot. A line belongs to one job or to the boot only."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self._jobs: OrderedDict[str, deque[str]] = OrderedDict()
        self._boot: deque[str] = deque(maxlen=BOOT_LINES)
        self._serving = False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line where it belongs."""
        job = current_job()
        if job is not None:
            self._jobs.setdefault(job, deque(maxlen=LINES_PER_JOB)).append(self.format(record))
            while len(self._jobs) > JOBS_REMEMBERED:
                self._jobs.popitem(last=False)
        elif not self._serving:
            self._boot.append(self.format(record))

    def boot_done(self) -> None:
        """From now on, lines without a job are nobody's: they might tell one caller about another."""
        self._serving = True

    def of(self, job_id: str) -> list[JsonValue]:
        """Boot lines of level warning and above are in the boot report; these are the job's own."""
        return list(self._jobs.get(job_id, ()))

    @property
    def boot(self) -> list[JsonValue]:
        """The boot's last lines."""
        return list(self._boot)

    def forget(self, job_id: str) -> None:
        """The job has its answer."""
        self._jobs.pop(job_id, None)


class DebugReport:
    """Puts `debug` together from what the boot found and what the job did.

    `engine`: what it is and what it had to do in the last so many seconds, those of the job.
    """

    def __init__(
        self,
        boot: Mapping[str, JsonValue],
        lines: JobLines,
        engine: Callable[[float], Mapping[str, JsonValue]],
        engine_load: Callable[[], EngineLoad | None],
    ) -> None:
        self._boot = boot
        self._lines = lines
        self._engine = engine
        self.engine_load = engine_load

    def of(self, job_id: str, stages: Stages) -> dict[str, JsonValue]:
        """`{boot, engine, stages, log}`; `boot` holds timings, gates, patches, GPU and settings without secrets."""
        return {
            "boot": dict(self._boot),
            "engine": dict(self._engine(stages.wall)),
            "stages": stages.report(),
            "log": self._lines.of(job_id),
        }

    def forget(self, job_id: str) -> None:
        """Drop what is kept for a job that has its answer."""
        self._lines.forget(job_id)
