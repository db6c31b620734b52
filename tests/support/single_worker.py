"""One worker (`python -m handler`) that the test itself starts, so that it sees its exit code and its processes."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from emulator import Emulator, Job
from emulator.fleet import WorkerState

ROOT = Path(__file__).resolve().parents[2]
STOP_PATIENCE_S = 60.0


@dataclass
class SingleWorker:
    """The worker and the emulator it takes its jobs from."""

    emulator: Emulator
    process: asyncio.subprocess.Process
    log: Path
    session: aiohttp.ClientSession
    started: float
    """Monotonic seconds."""

    async def ready(self, timeout_s: float) -> None:
        """Until it asks for a job; fails when it ends before."""
        async with asyncio.timeout(timeout_s):
            while self.emulator.workers()[0].state is WorkerState.INITIALIZING:
                assert self.process.returncode is None, f"the boot failed: {self.log.read_text()[-2000:]}"
                await asyncio.sleep(0.1)

    def members(self) -> list[psutil.Process]:
        """Everything that descends from it now."""
        return psutil.Process(self.process.pid).children(recursive=True)

    async def submit(self, **job: Any) -> Job:
        """Through `/run`."""
        headers = {"Authorization": f"Bearer {self.emulator.api_key}"}
        body = {"input": job, "policy": {"executionTimeout": 3_600_000}}
        async with self.session.post(f"{self.emulator.url}/run", json=body, headers=headers) as response:
            assert response.status == 200, await response.text()
            return self.emulator.queue.get((await response.json())["id"])

    async def exit_code(self, timeout_s: float) -> int:
        """Of the worker, once it has ended."""
        return await asyncio.wait_for(self.process.wait(), timeout_s)


@asynccontextmanager
async def single_worker(settings: Mapping[str, str], folder: Path) -> AsyncIterator[SingleWorker]:
    """A worker that is booting; when the block ends nothing of it is left."""
    log = folder / "worker.log"
    async with Emulator() as emulator, aiohttp.ClientSession() as session:
        env = {**os.environ, **emulator.worker_env("single"), "RUNPOD_LOG_LEVEL": "WARN", **settings}
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "handler", env=env, cwd=ROOT, stdout=output, stderr=output
            )
        try:
            yield SingleWorker(emulator, process, log, session, time.monotonic())
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), STOP_PATIENCE_S)
            except TimeoutError:
                process.kill()
                await process.wait()
            sys.stdout.write("\n".join(log.read_text(errors="replace").splitlines()[-30:]))


def embedded_engine(members: list[psutil.Process]) -> psutil.Process:
    """The engine itself, not its supervisor, whose command line names it as well."""
    ours = [p for p in members if "handler.engine.rapidocr_server" in p.cmdline() and "--" not in p.cmdline()]
    return ours[0]
