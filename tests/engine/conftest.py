"""The real SGLang on the CPU with tiny models, the whole worker on top of it, and the emulator in front.

Runs in `.venv-engine/worker`, which has the worker's packages and, behind them, SGLang's; see `make test-engine`.
"""

import asyncio
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from emulator import Job, JobStatus
from handler.engine.server import free_port
from tests.engine.tiny_merger import MERGER_WIDTH
from tests.support.single_worker import SingleWorker, single_worker

ROOT = Path(__file__).resolve().parents[2]
SGLANG_PYTHON = ROOT / ".venv-engine" / "bin" / "python"
SHIM = ROOT / "tests" / "engine" / "cpu_shim"
BOOT_DEADLINE_S = 900.0
JOB_DEADLINE_S = 900.0
VISION = json.dumps({"vision_config": {"projection_intermediate_size": MERGER_WIDTH}}, separators=(",", ":"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = not SGLANG_PYTHON.exists() or importlib.util.find_spec("torch") is None
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.engine)
            item.add_marker(pytest.mark.timeout(3000))
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
        "RENDER_PROCESSES": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "OMP_NUM_THREADS": "2",
        "PYTHONPATH": str(SHIM),
    }


def extra_args(more: str = "") -> str:
    return f"--json-model-override-args '{VISION}' {more}"


def scheduler(worker: SingleWorker) -> psutil.Process:
    """SGLang's process that runs the model."""
    return next(p for p in worker.members() if "scheduler" in p.name() or "scheduler" in " ".join(p.cmdline()))


async def until_running(worker: SingleWorker, job: Job) -> None:
    """Until the engine is known to work on this job: its progress says so."""
    async with asyncio.timeout(JOB_DEADLINE_S):
        while not any(isinstance(post, dict) and post.get("running") for post in job.progress_posts):
            assert not job.status.final, (job.status, job.error)
            await asyncio.sleep(0.1)


@pytest.fixture
def worker(environment: dict[str, str], tmp_path: Path) -> Callable[..., Any]:
    """`async with worker(NAME=value, ...) as real:` with more settings."""

    def make(**settings: str) -> Any:
        Path(environment["RUNPOD_VOLUME_PATH"]).mkdir(exist_ok=True)
        return single_worker({**environment, **settings}, tmp_path)

    return make


def assert_completed(job: Job) -> dict[str, Any]:
    assert job.status is JobStatus.COMPLETED, (job.status, job.error)
    return dict(job.output)
