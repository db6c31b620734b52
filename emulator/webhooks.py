"""Tells callers that their job has ended: one POST, repeated twice while it is not acknowledged."""

import asyncio

import aiohttp

from emulator.clock import Clock
from emulator.jobs import Job

ATTEMPTS = 3
PAUSE_S = 10.0


class Webhooks:
    """Posts what `/status` would say to the address that came with the job."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    def job_ended(self, job: Job) -> None:
        """Start telling, if the caller asked for it."""
        if job.webhook is not None:
            task = asyncio.create_task(self._tell(job.webhook, job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Until everyone has been told or given up on."""
        await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """Give up on what has not been told."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _tell(self, url: str, job: Job) -> None:
        async with aiohttp.ClientSession() as session:
            for attempt in range(ATTEMPTS):
                if attempt:
                    await self._clock.sleep(PAUSE_S)
                if await self._post(session, url, job):
                    return

    async def _post(self, session: aiohttp.ClientSession, url: str, job: Job) -> bool:
        try:
            async with session.post(url, json=job.view(self._clock.now())) as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False
