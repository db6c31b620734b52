from collections.abc import AsyncIterator, Iterator

import pytest
from aiohttp import web

from emulator import Limits, ManualClock
from emulator.queue import JobQueue
from emulator.webhooks import Webhooks


class ImpatientClock(ManualClock):
    """Sleeps no time and remembers how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Hook:
    """A caller's webhook that answers as scripted."""

    def __init__(self, answers: Iterator[int]) -> None:
        self.answers = answers
        self.told: list[str] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.told.append((await request.json())["status"])
        return web.Response(status=next(self.answers))


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    hook = Hook(iter(()))
    app = web.Application()
    app.router.add_post("/hook", hook.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    hook.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield hook
    await runner.cleanup()


@pytest.mark.parametrize(
    ("answers", "times"), [([200], 1), ([500, 200], 2), ([500, 404, 500, 200], 3)], ids=["at once", "again", "given up"]
)
async def test_ended_jobs_are_told_until_acknowledged(hook: Hook, answers: list[int], times: int) -> None:
    hook.answers = iter(answers)
    clock = ImpatientClock()
    queue, webhooks = JobQueue(clock, Limits()), Webhooks(clock)
    job = queue.submit({"input": {}, "webhook": hook.url}, sync=False, max_workers=1, kept_for_s=9)
    queue.cancel(job)
    webhooks.job_ended(job)
    await webhooks.settle()
    assert hook.told == ["CANCELLED"] * times
    assert clock.slept == [10.0] * (times - 1)


async def test_unreachable_webhooks_are_given_up() -> None:
    clock = ImpatientClock()
    queue, webhooks = JobQueue(clock, Limits()), Webhooks(clock)
    job = queue.submit({"input": {}, "webhook": "http://127.0.0.1:9/"}, sync=False, max_workers=1, kept_for_s=9)
    queue.cancel(job)
    webhooks.job_ended(job)
    await webhooks.settle()
    assert clock.slept == [10.0, 10.0]
