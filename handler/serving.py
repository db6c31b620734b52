"""Serving: the worker put together, and RunPod's loop around it. The boot imports this while the engine starts."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import runpod
from runpod.http_client import AsyncClientSession
from runpod.serverless.modules.rp_http import send_result

from handler import collector
from handler.boot import BootReport
from handler.bucket import bucket_client
from handler.chain import Chain
from handler.debug import DebugReport, JobLines
from handler.jobs import DocumentReader
from handler.progress import ProgressSender
from handler.results.delivery import Deliverer
from handler.results.storage import S3Storage, VolumeStorage
from handler.schema import Progress
from handler.settings import Settings
from handler.shutdown import Shutdown
from handler.supervisor import die_with_parent
from handler.volume import Housekeeper, mounted
from handler.worker import Worker

PROGRESS_TIMEOUT_S = 30.0
"""Long, since giving up a message is no proof that it will not be processed later, over the result."""


def serve(settings: Settings, chain: Chain, report: BootReport, lines: JobLines) -> None:
    """Take jobs until SIGTERM."""
    config: dict[str, Any] = {}
    worker = build_worker(settings, chain, report, lines, config)
    shutdown = Shutdown(settings.shutdown_grace_s, on_stop=worker.documents.checkpoints.leave)
    loop = Loop(chain, shutdown, settings.ocr_worker_concurrency)

    async def handle(event: dict[str, Any]) -> dict[str, Any]:
        loop.shutdown.adopt_current_job()
        return await worker.handle(event)

    config |= {"handler": handle, "concurrency_modifier": loop.concurrency}
    # The SDK's heartbeat is a forked child: it would tell the platform of a killed worker that it is alive.
    os.register_at_fork(after_in_child=die_with_parent)
    collector.settle()
    with suppress(asyncio.CancelledError):  # how `Shutdown` leaves the SDK's loops
        runpod.serverless.start(config)


@dataclass(frozen=True)
class Loop:
    """What has to happen inside the SDK's event loop, before its first job."""

    chain: Chain
    shutdown: Shutdown
    jobs_at_once: int

    def concurrency(self, current: int) -> int:
        """Called by the SDK in its running loop, first before any job is taken."""
        self.shutdown.watch()
        self.chain.start_following(on_gone=lambda: signal.raise_signal(signal.SIGTERM))
        return self.jobs_at_once


def build_worker(
    settings: Settings, chain: Chain, report: BootReport, lines: JobLines, config: dict[str, Any]
) -> Worker:
    """Put the worker together from what the boot made ready."""
    volume = mounted(settings.runpod_volume_path)
    bucket = bucket_client(settings)
    return Worker(
        documents=DocumentReader(chain.pages, chain.checkpoints(volume), settings, chain.produced_by),
        deliverer=Deliverer(
            volume=VolumeStorage(volume.results, volume.root) if volume else None,
            bucket=S3Storage(bucket, settings.bucket_name or "") if bucket else None,
        ),
        debug=DebugReport(report.as_json(), lines, chain.engine_report, chain.load),
        progress_to=progress_sender,
        golden_page=chain.read_golden_page,
        housekeeper=Housekeeper(volume, settings),
        declare_unfit=lambda: config.update(refresh_worker=True),
    )


def progress_sender(event: Mapping[str, Any]) -> ProgressSender:
    """Posts progress of one job and returns when it has arrived.

    The SDK's `progress_update` posts from a thread of its own, and may arrive after the result (runpod 1.12.0).
    """

    async def send(progress: Progress) -> None:
        data = {"status": "IN_PROGRESS", "output": progress.model_dump(mode="json")}
        try:
            async with asyncio.timeout(PROGRESS_TIMEOUT_S), AsyncClientSession() as session:
                await send_result(session, data, event)
        except TimeoutError:
            return

    return send
