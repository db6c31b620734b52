"""A caller and a hand-driven worker, both over HTTP."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from emulator import Emulator, ManualClock
from emulator.processes import WorkerCommand

ECHO_WORKER = WorkerCommand([sys.executable, "-m", "tests.support.echo_worker"], cwd=Path(__file__).parents[2])


class Caller:
    """Speaks the public API with the right key."""

    def __init__(self, emulator: Emulator, session: aiohttp.ClientSession) -> None:
        self.emulator = emulator
        self.session = session

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {self.emulator.api_key}"}
        async with self.session.request(method, f"{self.emulator.url}/{path}", json=body, headers=headers) as response:
            return response.status, await response.json()

    async def run(self, **wish: Any) -> str:
        status, answer = await self.call("POST", "run", {"input": wish})
        assert status == 200, answer
        return str(answer["id"])

    async def status(self, job_id: str) -> dict[str, Any]:
        status, answer = await self.call("GET", f"status/{job_id}")
        assert status == 200, answer
        return dict(answer)


class HandWorker:
    """Speaks the worker side, one request at a time, as the test says."""

    def __init__(self, emulator: Emulator, session: aiohttp.ClientSession, worker_id: str) -> None:
        self.emulator = emulator
        self.env = emulator.worker_env(worker_id)
        self.id = worker_id
        self._session = session

    async def take(self) -> dict[str, Any] | None:
        url = self.env["RUNPOD_WEBHOOK_GET_JOB"].replace("$ID", self.id)
        async with self._session.get(url) as response:
            return None if response.status == 204 else dict(await response.json())

    async def take_batch(self, count: int) -> list[str]:
        url = self.env["RUNPOD_WEBHOOK_GET_JOB"].replace("$ID", self.id).replace("job-take", "job-take-batch")
        async with self._session.get(f"{url}&batch_size={count}") as response:
            return [] if response.status == 204 else [job["id"] for job in await response.json()]

    async def stop_signals(self) -> list[str]:
        url = self.env["RUNPOD_WEBHOOK_GET_JOB"].replace("$ID", self.id).replace("job-take", "job-stop")
        async with self._session.get(url) as response:
            return [] if response.status == 204 else list((await response.json())["jobsToStop"])

    async def post(self, job_id: str, body: bytes | Any) -> int:
        url = self.env["RUNPOD_WEBHOOK_POST_OUTPUT"].replace("$RUNPOD_POD_ID", self.id).replace("$ID", job_id)
        kwargs: dict[str, Any] = {"data": body} if isinstance(body, bytes) else {"json": body}
        async with self._session.post(f"{url}&isStream=false", **kwargs) as response:
            return response.status

    async def stream(self, job_id: str, output: Any) -> int:
        url = self.env["RUNPOD_WEBHOOK_POST_STREAM"].replace("$RUNPOD_POD_ID", self.id).replace("$ID", job_id)
        async with self._session.post(url, json={"output": output}) as response:
            return response.status

    async def ping(self, job_ids: str = "") -> int:
        url = self.env["RUNPOD_WEBHOOK_PING"].replace("$RUNPOD_POD_ID", self.id)
        async with self._session.get(url, params={"job_id": job_ids}) as response:
            return response.status


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
async def emulator(clock: ManualClock) -> AsyncIterator[Emulator]:
    async with Emulator(clock=clock) as emulator:
        yield emulator


@pytest.fixture
def caller(emulator: Emulator, session: aiohttp.ClientSession) -> Caller:
    return Caller(emulator, session)


@pytest.fixture
def worker(emulator: Emulator, session: aiohttp.ClientSession) -> HandWorker:
    return HandWorker(emulator, session, "w1")


@pytest.fixture
def other_worker(emulator: Emulator, session: aiohttp.ClientSession) -> HandWorker:
    return HandWorker(emulator, session, "w2")
