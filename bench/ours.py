"""This worker, everything on but RunPod itself and the layout model: jobs go in as the platform gives them.

Started by the driver. The engine is `external`, at the simulator's address.
"""

import argparse
import asyncio
import base64
import gzip
import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.conversation import Channel, Done, Task
from bench.detector import FakeDetector, KnownRegions
from bench.threads import ThreadClock
from handler import collector
from handler.boot import BootReport
from handler.chain import Chain, open_chain
from handler.debug import JobLines
from handler.documents.page import OpenedDocument, Renderer, StagedDocument
from handler.engine.api import EngineName
from handler.engine.launch import start_engine
from handler.layout.names import LayoutName
from handler.progress import ProgressSender
from handler.schema import Progress
from handler.serving import build_worker
from handler.settings import Settings
from handler.worker import Worker


def settings_for(port: int, volume: Path) -> Settings:
    """The defaults, but for where things are."""
    return Settings(
        glmocr_engine=EngineName.EXTERNAL,
        glmocr_layout=LayoutName.WHOLE_PAGE,
        engine_url=f"http://127.0.0.1:{port}",
        runpod_volume_path=volume,
        boot_golden_page=False,
    )


def quiet(event: Mapping[str, Any]) -> ProgressSender:
    """Progress that goes nowhere."""

    async def send(progress: Progress) -> None:
        return

    return send


class InOrder:
    """A renderer that does not tell where tables may be, so that pages are read in their order."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._renderer, name)

    async def open(self, document: StagedDocument) -> OpenedDocument:
        """As the renderer says, but for the tables."""
        return replace(await self._renderer.open(document), tables=frozenset())


class Reader:
    """Reads documents as jobs, so many at once."""

    def __init__(self, worker: Worker, volume: Path, clock: ThreadClock) -> None:
        self._worker = worker
        self._volume = volume
        self._clock = clock
        self._ids = itertools.count()

    async def perform(self, task: Task) -> Done:
        """Read the documents. Each is put on the volume under a new name, so that nothing is resumed."""
        gate = asyncio.Semaphore(task.at_once)
        names = [self._offer(path) for path in task.paths]
        self._clock.restart()
        started = time.monotonic()
        outputs = await asyncio.gather(*(self._read(name, gate) for name in names))
        ended = time.monotonic()
        shutil.rmtree(self._volume / "glmocr", ignore_errors=True)
        return _done(started, ended, outputs, self._clock.seconds())

    def _offer(self, path: Path) -> str:
        name = f"{next(self._ids)}-{path.name}"
        os.link(path, self._volume / name)
        return name

    async def _read(self, name: str, gate: asyncio.Semaphore) -> dict[str, Any]:
        async with gate:
            return await self._worker.handle({"id": f"job-{name}", "input": {"volume_path": name}})


def _done(started: float, ended: float, outputs: list[dict[str, Any]], threads: dict[str, float]) -> Done:
    results = [_unpacked(output) for output in outputs]
    pages = [page for result in results for page in result["pages"]]
    regions = [region for page in pages for region in page["regions"] if region["status"] != "skipped"]
    lost = sum(region["status"] != "ok" for region in regions) + sum(page["status"] == "failed" for page in pages)
    notes = {
        "thread_cpu_s": threads,
        "stages": [result["debug"]["stages"] for result in results],
        "engine": results[-1]["debug"]["engine"],
        "degraded": [result["degraded"]["count"] for result in results],
        "warnings": sum(len(page["warnings"]) for page in pages),
    }
    characters = sum(len(region["text"]) for region in regions)
    return Done(started, ended, len(pages), len(regions), characters, lost, notes)


def _unpacked(output: dict[str, Any]) -> dict[str, Any]:
    if "error" in output:
        raise RuntimeError(output["error"])
    if output.get("delivery") == "gzip":
        result: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(output["data"])))
        return result
    return output


async def serve(chain: Chain, worker: Worker, volume: Path) -> None:
    """Answer the driver's tasks in one event loop, as the worker does with jobs."""
    channel = Channel()
    chain.start_following(on_gone=lambda: None)
    reader = Reader(worker, volume, ThreadClock())
    collector.settle()
    channel.ready()
    tasks = channel.tasks()
    while (task := await asyncio.to_thread(next, tasks, None)) is not None:
        channel.report(await reader.perform(task))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--layout-s", type=float, required=True)
    parser.add_argument("--first-in-first-out", action="store_true")
    args = parser.parse_args()
    detector = FakeDetector(KnownRegions(args.manifest, args.layout_s))
    with tempfile.TemporaryDirectory(dir=args.manifest.parent) as folder:
        settings = settings_for(args.port, Path(folder))
        report, lines = BootReport(settings), JobLines()
        with start_engine(settings) as starting, open_chain(settings, report, starting, lambda _: detector) as chain:
            if args.first_in_first_out:
                chain.slots.head_start = 0.0
                chain.pages = replace(chain.pages, renderer=InOrder(chain.pages.renderer))
            worker = replace(build_worker(settings, chain, report, lines, {}), progress_to=quiet)
            asyncio.run(serve(chain, worker, Path(folder)))


if __name__ == "__main__":
    main()
