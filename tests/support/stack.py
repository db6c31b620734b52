"""The whole product on one machine: emulator, the worker through `start.sh`, embedded engine; and ways to use it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from glmocr_runpod.errors import Exit

from emulator import Emulator
from emulator.autoscaler import Scaling
from emulator.jobs import Job
from emulator.processes import WorkerCommand
from emulator.threaded import ThreadedEmulator, threaded

ROOT = Path(__file__).resolve().parents[2]
START = ROOT / "start.sh"
BOOT_TIMEOUT_S = 180.0
JOB_TIMEOUT_S = 360.0


@dataclass(frozen=True, slots=True)
class Stack:
    """A running worker behind an emulated endpoint."""

    emulator: ThreadedEmulator
    state: Path

    def submit(self, wish: Mapping[str, Any]) -> Job:
        """Send one job through `/run` and wait for its end."""
        headers = {"Authorization": f"Bearer {self.emulator.api_key}"}
        answer = requests.post(f"{self.emulator.url}/run", json={"input": wish}, headers=headers, timeout=30)
        answer.raise_for_status()
        job_id = answer.json()["id"]
        return self.emulator.wait(lambda e: e.wait_job(job_id, JOB_TIMEOUT_S))

    def parse(self, *documents: Path, into: Path) -> dict[str, dict[str, Any]]:
        """Read documents with the client's command, degraded or not; the results by the documents' stems."""
        argv = [sys.executable, "-m", "glmocr_runpod", "parse", *map(str, documents), "-o", str(into)]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "client"),
            "RUNPOD_API_URL": self.emulator.base_url,
            "RUNPOD_ENDPOINT_ID": self.emulator.endpoint,
            "RUNPOD_API_KEY": self.emulator.api_key,
            "GLMOCR_STATE_DIR": str(self.state),
        }
        ended = subprocess.run(
            argv, env=environment, timeout=JOB_TIMEOUT_S, capture_output=True, text=True, check=False
        )
        assert ended.returncode in (Exit.OK, Exit.DEGRADED), ended.stderr
        return {one.stem: json.loads((into / f"{one.stem}.json").read_text("utf-8")) for one in documents}


def worker_settings(folder: Path, **settings: str) -> dict[str, str]:
    """The environment of a worker that needs neither GPU nor container."""
    volume = folder / "volume"
    volume.mkdir(exist_ok=True)
    return {
        "GLMOCR_ENGINE": "rapidocr",
        "HANDLER_PYTHON": sys.executable,
        "RUNPOD_VOLUME_PATH": str(volume),
        **settings,
    }


@contextmanager
def running(folder: Path, **settings: str) -> Iterator[Stack]:
    """A stack that is ready for jobs, and gone afterwards."""
    logs = folder / "logs"
    command = WorkerCommand([str(START)], env=worker_settings(folder, **settings), log_dir=logs)
    with threaded(Emulator(command=command, scaling=Scaling(min_workers=1, max_workers=1))) as emulator:
        emulator.wait(lambda e: e.wait_ready(BOOT_TIMEOUT_S))
        yield Stack(emulator, folder / "state")


def page_texts(result: Mapping[str, Any]) -> list[str]:
    """The text of each page of a result, its regions in reading order."""
    return ["\n".join(region["text"] for region in page["regions"]) for page in result["pages"]]
