"""The real SGLang on the CPU with tiny models, the whole worker on top of it, and the emulator in front.

Runs in `.venv-engine/worker`, which has the worker's packages and, behind them, SGLang's; see `make test-engine`.
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from emulator import Emulator, Job, JobStatus
from emulator.fleet import WorkerState
from handler.engine.server import free_port
from tests.engine.tiny_merger import MERGER_WIDTH

ROOT = Path(__file__).resolve().parents[2]
SGLANG_PYTHON = ROOT / ".venv-engine" / "bin" / "python"
SHIM = ROOT / "tests" / "engine" / "cpu_shim"
BOOT_DEADLINE_S = 500.0
JOB_DEADLINE_S = 400.0
VISION = json.dumps({"vision_config": {"projection_intermediate_size": MERGER_WIDTH}}, separators=(",", ":"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = not SGLANG_PYTHON.exists() or importlib.util.find_spec("torch") is None
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.engine)
            item.add_marker(pytest.mark.timeout(900))
            if missing:
                item.add_marker(pytest.mark.skip(reason="run it with `make test-engine`"))


@pytest.fixture(scope="session")
def models() -> Path:
    """Folder with `glm_ocr`, `layout` and `layout_unnamed`; made once, in seconds."""
    folder = ROOT / ".cache" / "engine" / "models"
    if not (folder / "layout_unnamed" / "config.json").exists():
        build = [sys.executable, "-m", "tests.engine.tiny_models", str(folder)]
        subprocess.run(build, check=True, capture_output=True, cwd=ROOT)
    return folder


@pytest.fixture
def environment(models: Path, tmp_path: Path) -> dict[str, str]:
    """The settings of a worker on real SGLang. `SGLANG_EXTRA_ARGS` must keep the tiny model's vision override."""
    return {
        "GLMOCR_ENGINE": "sglang",
        "SGLANG_PROFILE": "cpu",
        "SGLANG_PYTHON": str(SGLANG_PYTHON),
        "SGLANG_PORT": str(free_port(0)),
        "SGLANG_EXTRA_ARGS": extra_args(),
        "MODEL_PATH": str(models / "glm_ocr"),
        "LAYOUT_MODEL_PATH": str(models / "layout"),
        "BOOT_GOLDEN_PAGE": "off",
        "RUNPOD_VOLUME_PATH": str(tmp_path / "volume"),
        "RUNPOD_LOG_LEVEL": "WARN",
        "RENDER_PROCESSES": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "2",
        "PYTHONPATH": str(SHIM),
    }


def extra_args(more: str = "") -> str:
    return f"--json-model-override-args '{VISION}' {more}"


@dataclass
class RealWorker:
    """`python -m handler` on real SGLang, taking jobs from an emulator."""

    emulator: Emulator
    process: asyncio.subprocess.Process
    log: Path
    session: aiohttp.ClientSession
    started: float

    async def ready(self) -> None:
        """Until it asks for a job; fails when it ends before."""
        async with asyncio.timeout(BOOT_DEADLINE_S):
            while self.emulator.workers()[0].state is WorkerState.INITIALIZING:
                assert self.process.returncode is None, f"the boot failed: {self.log.read_text()[-2000:]}"
                await asyncio.sleep(0.2)

    def members(self) -> list[psutil.Process]:
        """Everything that descends from it now."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def scheduler(self) -> psutil.Process:
        """SGLang's process that runs the model."""
        return next(p for p in self.members() if "scheduler" in p.name() or "scheduler" in " ".join(p.cmdline()))

    async def submit(self, **job: Any) -> str:
        headers = {"Authorization": f"Bearer {self.emulator.api_key}"}
        body = {"input": job, "policy": {"executionTimeout": 3_600_000}}
        async with self.session.post(f"{self.emulator.url}/run", json=body, headers=headers) as response:
            return str((await response.json())["id"])

    async def ended(self, job_id: str) -> Job:
        return await self.emulator.wait_job(job_id, JOB_DEADLINE_S)

    async def until_running(self, job_id: str) -> None:
        """Until the engine is known to work on this job."""
        async with asyncio.timeout(JOB_DEADLINE_S):
            while not (isinstance(self._job(job_id).output, dict) and (self._job(job_id).output or {}).get("running")):
                assert not self._job(job_id).status.final, self._job(job_id)
                await asyncio.sleep(0.1)

    def _job(self, job_id: str) -> Job:
        return self.emulator.queue.get(job_id)


@asynccontextmanager
async def real_worker(environment: dict[str, str], tmp_path: Path) -> AsyncIterator[RealWorker]:
    """A worker that is booting; when the block ends nothing of it is left."""
    Path(environment["RUNPOD_VOLUME_PATH"]).mkdir(exist_ok=True)
    log = tmp_path / "worker.log"
    async with Emulator() as emulator, aiohttp.ClientSession() as session:
        env = {**os.environ, **emulator.worker_env("real"), **environment}
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "handler", env=env, cwd=ROOT, stdout=output, stderr=output
            )
        try:
            yield RealWorker(emulator, process, log, session, time.monotonic())
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), 60)
            sys.stdout.write("\n".join(log.read_text(errors="replace").splitlines()[-30:]))


@pytest.fixture
def worker(environment: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """`async with worker(NAME=value, ...) as real:` with more settings."""

    def make(**settings: str) -> Any:
        return real_worker({**environment, **settings}, tmp_path)

    return make


def assert_completed(job: Job) -> dict[str, Any]:
    assert job.status is JobStatus.COMPLETED, (job.status, job.error)
    return dict(job.output)
