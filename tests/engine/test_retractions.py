"""A pool too small for what runs makes the real scheduler throw requests back; the answers say so."""

import asyncio
import json

import aiohttp
import pytest

from handler.engine.api import EngineReply, EngineRequest
from handler.engine.client import HttpEngine
from handler.engine.launch import start_engine
from handler.engine.wire import read_reply, request_body
from handler.settings import Settings
from tests.engine.conftest import extra_args

CONTEXT = POOL = 1024
REQUESTS = 8
ANSWER = 400
"""Tokens. Admitted by what they hold at first, these requests together outgrow the pool."""


def body(number: int) -> bytes:
    """As the worker asks, but to the limit, and without a picture: preparing one would delay the next request."""
    asked = json.loads(b"".join(request_body(EngineRequest(f"{number}", b"", ANSWER), "glm-ocr", ask_meta=True)))
    [message] = asked["messages"]
    message["content"] = message["content"][1]["text"]
    return json.dumps(asked | {"ignore_eos": True}).encode()


async def answers(engine: HttpEngine, key: str) -> list[EngineReply]:
    async def ask(session: aiohttp.ClientSession, number: int) -> EngineReply:
        async with session.post(f"{engine.url}/v1/chat/completions", data=body(number), headers=headers) as response:
            return read_reply(response.status, await response.read())

    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession() as session:
        return await asyncio.gather(*(ask(session, number) for number in range(REQUESTS)))


def test_answers_that_were_begun_anew_say_so(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    # The scheduler would not admit so many side by side if it did not expect them to end early.
    flags = f"--context-length {CONTEXT} --max-total-tokens {POOL} --schedule-conservativeness 0.1"
    monkeypatch.setenv("SGLANG_EXTRA_ARGS", extra_args(flags))
    with start_engine(Settings.from_env()) as boot:
        engine = boot.wait_ready()

        async def ask() -> tuple[list[EngineReply], int]:
            async with engine:
                replies = await answers(engine, str(boot.key))
                load = await engine.load()
                return replies, load.retractions if load else 0

        replies, counted = asyncio.run(ask())
    told = sum(reply.retractions for reply in replies)
    print(f"{told} retractions told with the answers, {counted} counted by the engine")
    assert counted
    assert told == counted
