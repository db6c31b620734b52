"""The embedded engine as a process of its own, spoken to over HTTP."""

import asyncio
import base64
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from subprocess import Popen
from typing import Any

import aiohttp
import cv2
import numpy as np
import pytest

from handler.engine.api import EngineName
from handler.engine.facts import facts_from
from handler.engine.server import free_port

KEY = "a-key-for-this-test"
AUTHORISED = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def engine() -> Iterator[tuple[Popen[bytes], int]]:
    port = free_port(0)
    argv = [sys.executable, "-m", "handler.engine.rapidocr_server", "--port", str(port), "--api-key-env", "THE_KEY"]
    with Popen(argv, env={**os.environ, "THE_KEY": KEY}) as process:
        yield process, port
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.fixture
async def session(engine: tuple[Popen[bytes], int]) -> AsyncIterator[aiohttp.ClientSession]:
    process, port = engine
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        while await health(session) != 200:
            assert process.poll() is None
            await asyncio.sleep(0.1)
        yield session


async def health(session: aiohttp.ClientSession) -> int:
    with contextlib.suppress(aiohttp.ClientConnectionError):
        async with session.get("/health") as answer:
            return answer.status
    return 0


def picture(*lines: str) -> str:
    page = np.full((60 + 50 * len(lines), 700, 3), 255, np.uint8)
    for n, line in enumerate(lines):
        cv2.putText(page, line, (20, 55 + 50 * n), cv2.FONT_HERSHEY_SIMPLEX, 1, (0, 0, 0), 2)
    return "data:image/png;base64," + base64.b64encode(cv2.imencode(".png", page)[1].tobytes()).decode()


def body(url: str, prompt: str = "Text Recognition:", **fields: object) -> dict[str, Any]:
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": prompt}]
    return {"model": "glm-ocr", "messages": [{"role": "user", "content": content}], **fields}


async def ask(session: aiohttp.ClientSession, payload: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    async with session.post("/v1/chat/completions", json=payload, headers=AUTHORISED) as answer:
        return answer.status, await answer.json()


async def test_reads_lines_in_order(session: aiohttp.ClientSession) -> None:
    status, answer = await ask(session, body(picture("The first line", "The second line")))
    assert status == 200
    [choice] = answer["choices"]
    assert choice["message"]["content"].split("\n") == ["The first line", "The second line"]
    assert choice["finish_reason"] == "stop"
    assert answer["usage"]["completion_tokens"] > 0


async def test_reads_a_single_line(session: aiohttp.ClientSession) -> None:
    _, answer = await ask(session, body(picture("Only one line")))
    assert answer["choices"][0]["message"]["content"] == "Only one line"


async def test_a_table_prompt_is_answered_with_a_table(session: aiohttp.ClientSession) -> None:
    _, answer = await ask(session, body(picture("left          right", "below         there"), "Table Recognition:"))
    text = answer["choices"][0]["message"]["content"]
    assert text.startswith("<table><tr>")
    assert all(word in text for word in ("left", "right", "below", "there"))


async def test_the_budget_cuts_like_a_model(session: aiohttp.ClientSession) -> None:
    _, answer = await ask(session, body(picture("The first line", "The second line"), max_tokens=3))
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["choices"][0]["message"]["content"] == "The first line"
    assert answer["usage"]["completion_tokens"] == 3


async def test_an_empty_picture_has_no_text(session: aiohttp.ClientSession) -> None:
    _, answer = await ask(session, body(picture()))
    assert answer["choices"][0]["message"]["content"] == ""


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (body("file:///etc/hostname"), "only data:image"),
        (body("http://127.0.0.1:9/x.png"), "only data:image"),
        (body("data:image/png;base64,bm90IGFuIGltYWdl"), "cannot identify image file"),
        (body("data:image/png;base64,!"), "Non-base64"),
        (body(picture("x"), max_tokens=32768), "maximum context length of 32768"),
        ({"messages": []}, "messages"),
    ],
)
async def test_what_it_refuses(session: aiohttp.ClientSession, payload: dict[str, Any], complaint: str) -> None:
    status, answer = await ask(session, payload)
    assert (status, answer["object"], answer["code"]) == (400, "error", 400)
    assert complaint in answer["message"]


async def test_the_key_is_checked_except_where_probes_come_in(session: aiohttp.ClientSession) -> None:
    async with session.get("/v1/models") as answer:
        assert (answer.status, await answer.json()) == (401, {"error": "Unauthorized"})
    async with session.get("/metrics") as answer:
        assert answer.status == 200
    assert await health(session) == 200


async def test_it_describes_itself_as_the_worker_expects(session: aiohttp.ClientSession) -> None:
    async with (
        session.get("/server_info", headers=AUTHORISED) as info,
        session.get("/v1/models", headers=AUTHORISED) as models,
    ):
        facts = facts_from(EngineName.RAPIDOCR, await info.json(), await models.json(), "glm-ocr")
    assert facts.model == "PP-OCRv6 small"
    assert facts.context_length == 32768
    assert (facts.kv_pool_tokens or 0) >= facts.context_length
    assert facts.slots == len(os.sched_getaffinity(0))


async def test_a_request_given_up_leaves_the_queue(session: aiohttp.ClientSession) -> None:
    payload = body(picture(*(f"Line number {n} of a long page" for n in range(40))))
    tasks = [asyncio.create_task(ask(session, payload)) for _ in range(12)]
    while (await load(session))["num_waiting_reqs"] == 0:  # noqa: ASYNC110 - the server is another process
        await asyncio.sleep(0.01)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    while (await load(session))["num_waiting_reqs"]:  # noqa: ASYNC110 - the server is another process
        await asyncio.sleep(0.01)
    async with session.get("/metrics") as answer:
        metrics = await answer.text()
    aborted = next(line for line in metrics.splitlines() if line.startswith("sglang:num_aborted_requests_total"))
    assert float(aborted.split()[-1]) >= 10


async def load(session: aiohttp.ClientSession) -> dict[str, Any]:
    async with session.get("/v1/loads", headers=AUTHORISED) as answer:
        entry: dict[str, Any] = (await answer.json())["loads"][0]
        return entry
