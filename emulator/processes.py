"""Worker processes: each its own process group, ended as a container is ended, with everything in it."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

TETHER = Path(__file__).with_name("tether.py")


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """How to start one worker."""

    argv: Sequence[str]
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to this process's environment, under the emulator's own variables."""
    cwd: Path | None = None
    log_dir: Path | None = None
    """Where each worker's output goes, `WORKER_ID.log`; None: to this process's."""
    stop_grace_s: float = 30.0
    """Between SIGTERM and SIGKILL, real seconds."""


class WorkerProcess:
    """One running worker and its descendants."""

    def __init__(self, worker_id: str, process: asyncio.subprocess.Process, grace_s: float, log: Path | None) -> None:
        self.worker_id = worker_id
        self.log = log
        self._process = process
        self._grace_s = grace_s

    @classmethod
    async def start(cls, command: WorkerCommand, worker_id: str, env: Mapping[str, str]) -> "WorkerProcess":
        """Start in a session of its own, which ends when this process is killed."""
        if command.log_dir:
            command.log_dir.mkdir(parents=True, exist_ok=True)
        log = command.log_dir / f"{worker_id}.log" if command.log_dir else None
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(log.open("ab")) if log else None
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(TETHER), str(os.getpid())),
                *command.argv,
                env={**os.environ, **command.env, **env},
                cwd=command.cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        return cls(worker_id, process, command.stop_grace_s, log)

    @property
    def pid(self) -> int:
        """Of the process started; also its group and session."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for its end."""
        return await self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Signal the worker alone, as the platform signals a container's first process."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def stop(self) -> int:
        """SIGTERM, then SIGKILL for whatever is left after the grace; the exit status."""
        self.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.wait(), self._grace_s)
        return await self.kill()

    async def kill(self) -> int:
        """SIGKILL for everything that belongs to the worker, as when a host takes a container away."""
        self.kill_members()
        return await self.wait()

    def kill_members(self) -> None:
        """The same without waiting."""
        for process in self.members():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def members(self) -> list[psutil.Process]:
        """Every live process that carries this worker's id in its environment or descends from it."""
        found = {p.pid: p for p in psutil.process_iter() if _carries(p, self.worker_id)}
        for process in list(found.values()):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.update((child.pid, child) for child in process.children(recursive=True))
        return list(found.values())


def _carries(process: psutil.Process, worker_id: str) -> bool:
    try:
        return process.environ().get("RUNPOD_POD_ID") == worker_id
    except (psutil.Error, OSError):
        return False
