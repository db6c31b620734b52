"""Token budgets are the throughput lever: how many regions the real scheduler runs at once with ours, and without."""

import asyncio
import io
import random
from contextlib import suppress
from dataclasses import replace

import aiohttp
import pytest
from PIL import Image

from handler.engine.api import EngineRequest
from handler.engine.client import HttpEngine
from handler.engine.launch import start_engine
from handler.engine.wire import request_body
from handler.recognition.budget import token_budget
from handler.recognition.prompts import Task
from handler.settings import Settings
from tests.engine.conftest import extra_args

POOL = CONTEXT = 32768
REGIONS = 64
FLAT = 8192
SIZES = [(252, 28), (308, 56), (812, 28), (812, 56), (1064, 84), (1092, 84), (1092, 84), (1092, 112), (1092, 112),
         (1092, 112), (1092, 140), (1064, 168), (1092, 224), (1092, 280), (1092, 448)]  # fmt: skip
"""Pixels of every fifteenth of the 360 text regions that the published model read, ordered by size; beside them one
table in sixteen regions, which is more than there were."""
TABLE = (1092, 420)
WATCH_S = 150.0


def regions() -> list[tuple[Task, EngineRequest]]:
    """64 pictures, all different, so that no prefix is shared."""
    chance = random.Random(0)
    chosen = []
    for number in range(REGIONS):
        table = number % 16 == 15
        size = TABLE if table else SIZES[number % 16]
        buffer = io.BytesIO()
        Image.frombytes("RGB", (14, 14), chance.randbytes(588)).resize(size).save(buffer, "JPEG")
        task = Task.TABLE if table else Task.TEXT
        budget = token_budget(task, *size, context=CONTEXT, ceiling=CONTEXT)
        chosen.append((task, EngineRequest(task, buffer.getvalue(), budget.first)))
    chance.shuffle(chosen)
    return chosen


async def peak_running(engine: HttpEngine, key: str, requests: list[EngineRequest]) -> int:
    """Most requests the scheduler ran at once, all of them having been sent at the same time."""

    async def ask(session: aiohttp.ClientSession, request: EngineRequest) -> None:
        # Answers must not end by themselves: what is measured is how many are let in side by side.
        body = b"".join(request_body(request, "glm-ocr"))[:-1] + b', "ignore_eos": true}'
        async with session.post(f"{engine.url}/v1/chat/completions", data=body, headers=headers) as response:
            assert response.status == 200, await response.text()

    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    peak = 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        calls = [asyncio.create_task(ask(session, request)) for request in requests]
        end = asyncio.get_running_loop().time() + WATCH_S
        while asyncio.get_running_loop().time() < end and not all(call.done() for call in calls):
            load = await engine.load()
            peak = max(peak, load.running if load else 0)
            await asyncio.sleep(0.2)
        for call in calls:
            if call.done():
                call.result()
            call.cancel()
        for call in calls:
            with suppress(asyncio.CancelledError):
                await call
    await until_idle(engine)
    return peak


async def until_idle(engine: HttpEngine) -> None:
    """Aborted requests leave the scheduler within a second or two."""
    for _ in range(240):
        load = await engine.load()
        if load is not None and not load.running and not load.queued:
            return
        await asyncio.sleep(0.5)
    raise AssertionError("the scheduler still runs aborted requests")


def test_our_budgets_run_more_regions_at_once_on_the_same_pool(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SGLANG_EXTRA_ARGS", extra_args(f"--context-length {CONTEXT} --max-total-tokens {POOL}"))
    chosen = [request for _, request in regions()]
    flat = [replace(request, max_tokens=FLAT) for request in chosen]
    with start_engine(Settings.from_env()) as boot:
        engine = boot.wait_ready()
        assert engine.facts.kv_pool_tokens == POOL

        async def both() -> tuple[int, int]:
            async with engine:
                key = str(boot.key)
                return await peak_running(engine, key, chosen), await peak_running(engine, key, flat)

        ours, theirs = asyncio.run(both())
    budgets = sorted(request.max_tokens for request in chosen)
    with capsys.disabled():
        print(f"\n{REGIONS} regions in flight on a pool of {POOL} tokens: at most {ours} run with our budgets (median "
              f"{budgets[REGIONS // 2]}), {theirs} with {FLAT} for all: {ours / theirs:.1f} times")  # fmt: skip
    assert ours >= 2.5 * theirs
