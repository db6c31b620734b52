"""Real workers (`python -m handler`) on the emulator, one fake engine, one volume, and a stubborn customer."""

import asyncio
import base64
import contextlib
import gzip
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import glmocr_runpod
from glmocr_runpod import Client, Options
from glmocr_runpod.config import Config

from emulator import Emulator, Job, JobStatus, Scaling, WorkerCommand
from handler.identity import content_key
from handler.schema import JobInput
from tests.support.coded_pages import codes_of, text_of, write_pdf
from tests.support.engine_process import ROOT, EngineProcess

DPI = 72
DOCUMENT_DEADLINE_S = 540.0


class NotDelivered(AssertionError):
    """A document did not come back, whatever the customer tried."""


@dataclass(frozen=True)
class Rig:
    """Everything a fault run needs."""

    emulator: Emulator
    engine: EngineProcess
    folder: Path
    session: aiohttp.ClientSession
    command: WorkerCommand

    @property
    def volume(self) -> Path:
        """What the workers have mounted."""
        return self.folder / "volume"

    @property
    def disk_full(self) -> Path:
        """While this file exists, the workers find their volume full."""
        return self.folder / "disk-full"

    def document(self, number: int, pages: int, *, blank: tuple[int, ...] = (), blocks: int = 1) -> "Document":
        """A PDF of coded pages."""
        path = write_pdf(self.folder / f"{number}.pdf", number, pages, blank=blank, blocks=blocks)
        return Document(number, pages, blank, path.read_bytes(), blocks)

    async def submit(self, document: "Document", **options: Any) -> str:
        """Through `/run`; the job's id."""
        body = {"input": document.input(**options), "policy": {"executionTimeout": 3_600_000}}
        return str((await self.call("POST", "run", body))["id"])

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request of the public API, which must be answered with 200."""
        headers = {"Authorization": f"Bearer {self.emulator.api_key}"}
        url = f"{self.emulator.url}/{path}"
        async with self.session.request(method, url, json=body, headers=headers) as response:
            assert response.status == 200, f"{path}: {response.status} {await response.text()}"
            return await response.json()

    async def deliver(self, document: "Document", tries: int = 15, **options: Any) -> dict[str, Any]:
        """Submit, and do what a client does with every ending until the result is there. Raises `NotDelivered`."""
        job_id = await self.submit(document, **options)
        endings = []
        for _ in range(tries):
            job = await self.emulator.wait_job(job_id, DOCUMENT_DEADLINE_S)
            if job.status is JobStatus.COMPLETED:
                result = self.result(job) or self.kept_result(document, **options)
                if result is not None:
                    return result
                endings.append("no output")
                job_id = await self.submit(document, **options)
            elif job.status is JobStatus.FAILED and json.loads(job.error)["retryable"]:
                endings.append(json.loads(job.error)["code"])
                await self.call("POST", f"retry/{job_id}")
            else:
                raise NotDelivered(f"document {document.number}: {job.status}: {job.error}")
        raise NotDelivered(f"document {document.number} after {tries} tries: {endings}")

    async def read_by_client(self, document: "Document") -> glmocr_runpod.Document:
        """The document as whoever uses our client gets it."""
        config = Config(
            runpod_api_key=self.emulator.api_key,
            runpod_endpoint_id=self.emulator.endpoint,
            runpod_api_url=self.emulator.base_url,
            glmocr_state_dir=str(self.folder / "client"),
        )

        def parse() -> glmocr_runpod.Document:
            with Client(config=config) as client:
                return client.parse(document.pdf, Options(dpi=DPI), name=f"{document.number}.pdf")

        return await asyncio.to_thread(parse)

    def stored_pages(self, document: "Document", **options: Any) -> set[int]:
        """The pages that a worker would find in the checkpoint."""
        folder = self.volume / "glmocr" / "checkpoints" / self._content_key(document, **options)
        return {int(path.name[5:10]) for path in folder.glob("*/page-*.json.gz")}

    def result(self, job: Job) -> dict[str, Any] | None:
        """The job's output, unwrapped and checked against its hash; None without output."""
        if not job.has_output:
            return None
        output: dict[str, Any] = job.output
        delivery = output.get("delivery")
        if delivery is None:
            return output
        if delivery == "gzip":
            data = gzip.decompress(base64.b64decode(output["data"]))
        else:
            data = (self.volume / output["key"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (output["size"], output["sha256"])
        return dict(json.loads(data))

    def kept_result(self, document: "Document", **options: Any) -> dict[str, Any] | None:
        """What was left on the volume under the content key."""
        path = self.volume / "glmocr" / "results" / self._content_key(document, **options) / "result.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def _content_key(self, document: "Document", **options: Any) -> str:
        return content_key(hashlib.sha256(document.pdf).hexdigest(), JobInput(**document.input(**options)))

    def logs(self) -> str:
        """The last lines of every worker, for the report of a failure."""
        paths = sorted((self.folder / "logs").glob("*.log"))
        return "\n".join(f"--- {p.name}\n" + "\n".join(p.read_text(errors="replace").splitlines()[-15:]) for p in paths)


@dataclass(frozen=True)
class Document:
    """One document and what is in it."""

    number: int
    pages: int
    blank: tuple[int, ...]
    pdf: bytes
    blocks: int = 1

    def input(self, **options: Any) -> dict[str, Any]:
        """As `input` of a job."""
        return {"file_base64": base64.b64encode(self.pdf).decode(), "dpi": DPI, **options}

    def page(self, number: int) -> str:
        """What the fake engine calls one of its pages."""
        return f"document {self.number} page {number}"

    def ledger(self) -> list[tuple[int, str, str]]:
        """Number, status and text of every page, as the result must have them."""
        numbers = range(1, self.pages + 1)
        return [(n, "blank", "") if n in self.blank else (n, "ok", self._text(n)) for n in numbers]

    def _text(self, page: int) -> str:
        return " ".join(text_of(self.number, code) for code in codes_of(page, self.blocks))


def ledger_of(result: dict[str, Any]) -> list[tuple[int, str, str]]:
    """The same of a result. On a blank page the engine may have invented something; it is no part of the text."""
    return [
        (p["page"], p["status"], "" if p["status"] == "blank" else " ".join(r["text"] for r in p["regions"]))
        for p in result["pages"]
    ]


def worker_command(folder: Path, engine_url: str, settings: dict[str, str] | None = None) -> WorkerCommand:
    """How to start a worker that reads whole pages with the engine at that address."""
    env = {
        "GLMOCR_ENGINE": "external",
        "ENGINE_URL": engine_url,
        "GLMOCR_LAYOUT": "whole_page",
        "BOOT_GOLDEN_PAGE": "off",
        "RUNPOD_VOLUME_PATH": str(folder / "volume"),
        "RENDER_PROCESSES": "1",
        "LOG_LEVEL": "info",
        "RUNPOD_LOG_LEVEL": "WARN",
        "FULL_DISK_SWITCH": str(folder / "disk-full"),
        "PYTHONPATH": f"{ROOT / 'tests' / 'support' / 'worker_hooks'}{os.pathsep}{ROOT}",
        **(settings or {}),
    }
    return WorkerCommand([sys.executable, "-m", "handler"], env=env, cwd=ROOT, log_dir=folder / "logs")


@contextlib.asynccontextmanager
async def running_rig(
    folder: Path,
    *,
    workers: int = 1,
    slots: int = 16,
    seconds: float = 0.05,
    settings: dict[str, str] | None = None,
    emulator_options: dict[str, Any] | None = None,
) -> AsyncIterator[Rig]:
    """Start engine, endpoint and workers; when the block ends nothing of them is left."""
    (folder / "volume").mkdir()
    async with EngineProcess(folder, slots=slots, seconds=seconds) as engine, aiohttp.ClientSession() as session:
        command = worker_command(folder, engine.url, settings)
        scaling = Scaling(min_workers=workers, max_workers=workers)
        async with Emulator(command=command, scaling=scaling, **(emulator_options or {})) as emulator:
            rig = Rig(emulator, engine, folder, session, command)
            try:
                await emulator.wait_ready(90)
                yield rig
            except BaseException:
                sys.stdout.write(rig.logs())
                raise
        complaints = [path.name for path in (folder / "logs").glob("*.log") if b"Unclosed" in path.read_bytes()]
        assert complaints == [], "connections left open"
