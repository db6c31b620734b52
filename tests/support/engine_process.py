"""The fake engine as a child process that can be killed and comes back at the same address."""

import asyncio
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Self

import aiohttp

NORMAL: dict[str, Any] = {"text": None, "filler": 0, "finish_reason": "stop", "status": 200, "hang": []}
ROOT = Path(__file__).resolve().parents[2]


class EngineProcess:
    """`async with EngineProcess(folder) as engine:` serves at `engine.url` until the block ends."""

    def __init__(self, folder: Path, *, slots: int = 16, seconds: float = 0.05) -> None:
        self.journal = folder / "engine-journal.txt"
        self.url = ""
        self._slots = slots
        self._port = 0
        self._normal = self._behaviour = {"seconds": seconds, **NORMAL}
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.kill()

    async def start(self) -> None:
        """Start, at the port it had before if it ran before."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.support.fake_engine", "--port", str(self._port),
            "--slots", str(self._slots), "--journal", str(self.journal), cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.url = (await self._process.stdout.readline()).decode().strip()
        self._port = int(self.url.rpartition(":")[2])
        await self.control()

    async def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    async def control(self, **behaviour: Any) -> None:
        """Change how it answers, also after a restart; see `fake_engine.Behaviour`. `reset=True`: a new record."""
        reset = behaviour.pop("reset", False)
        self._behaviour = self._behaviour | behaviour
        if reset:
            self.journal.unlink(missing_ok=True)
        async with aiohttp.ClientSession() as session:
            await session.post(f"{self.url}/control", json={**self._behaviour, "reset": reset})

    async def behave_again(self) -> None:
        """As it was at first."""
        await self.control(**self._normal)

    async def until_asked(self, requests: int) -> None:
        """Until this process has been asked so often since its last reset."""
        await self._get("wait", requests=requests)

    async def until_asked_for(self, page: str, times: int) -> None:
        """Until this process has been asked so often for one page."""
        await self._get("wait", page=page, times=times)

    async def until_idle(self) -> dict[str, Any]:
        """Until nothing runs and nothing queues; its record then."""
        return await self._get("wait")

    async def _get(self, path: str, **query: str | int) -> dict[str, Any]:
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}/{path}", params=query) as response:
            return dict(await response.json())

    def asked(self) -> Counter[str]:
        """How often each page was asked for since the start or the last reset, by all its processes."""
        return self._journal_of("asked")

    def answered(self) -> Counter[str]:
        """How often each page was answered; what was asked and not answered was aborted, or died with the engine."""
        return self._journal_of("answered")

    def _journal_of(self, event: str) -> Counter[str]:
        lines = self.journal.read_text().splitlines() if self.journal.exists() else []
        return Counter(line.removeprefix(f"{event} ") for line in lines if line.startswith(f"{event} "))
