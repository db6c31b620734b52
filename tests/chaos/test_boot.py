"""A worker that is stopped while it boots."""

import asyncio
import signal
from pathlib import Path

from emulator import Emulator, WorkerCommand
from emulator.processes import WorkerProcess
from tests.support.survivors import survivors
from tests.support.worker_rig import worker_command

DEADLINE_S = 60


async def test_sigterm_during_boot_is_no_failure(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(never_answer, "127.0.0.1", 0)
    url = "http://{}:{}".format(*server.sockets[0].getsockname())
    command: WorkerCommand = worker_command(tmp_path, url)
    async with server, Emulator() as emulator:
        process = await WorkerProcess.start(command, "w", emulator.worker_env("w"))
        await asyncio.wait_for(asked.wait(), DEADLINE_S)
        family = process.members()
        process.signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), DEADLINE_S) == 0
        assert await asyncio.to_thread(survivors, family) == []
        await process.kill()
