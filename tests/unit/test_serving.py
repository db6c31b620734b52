"""Progress on its way to the platform, through the SDK's own posting."""

import asyncio

import pytest
from aiohttp import web
from runpod.serverless.modules import rp_http

from handler import serving
from handler.progress import ProgressMeter, ProgressReporter


async def test_progress_goes_on_when_the_platform_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    posts: list[int] = []
    answered = asyncio.Event()

    async def done(request: web.Request) -> web.Response:
        posts.append((await request.json())["output"]["pages_done"])
        if len(posts) == 1:
            await asyncio.Event().wait()
        answered.set()
        return web.Response()

    app = web.Application()
    app.router.add_post("/done", done)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    monkeypatch.setattr(rp_http, "JOB_DONE_URL", f"http://127.0.0.1:{runner.addresses[0][1]}/done?job=$ID")
    monkeypatch.setattr(serving, "PROGRESS_TIMEOUT_S", 0.2)
    meter = ProgressMeter()
    meter.pages_total = 5
    sender = serving.progress_sender({"id": "job"})
    async with ProgressReporter(meter, sender, lambda: None, interval_s=0.01, repeat_s=0.01):
        await asyncio.wait_for(answered.wait(), 20)
    await runner.cleanup()
    assert len(posts) >= 2
