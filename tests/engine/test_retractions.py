"""A pool too small for what runs makes the real scheduler throw requests back; the answers say so."""

import asyncio
import io
import random

import pytest
from PIL import Image

from handler.engine.api import EngineReply, EngineRequest
from handler.engine.launch import start_engine
from handler.settings import Settings
from tests.engine.conftest import extra_args

CONTEXT = POOL = 2048
REQUESTS = 8
ANSWER = 700
"""Tokens. Admitted together by what they hold at first, these requests outgrow the pool."""


def requests() -> list[EngineRequest]:
    chance = random.Random(1)
    made = []
    for _ in range(REQUESTS):
        buffer = io.BytesIO()
        Image.frombytes("RGB", (14, 14), chance.randbytes(588)).resize((280, 56)).save(buffer, "JPEG")
        made.append(EngineRequest("Text Recognition:", buffer.getvalue(), ANSWER))
    return made


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
                replies = await asyncio.gather(*map(engine.complete, requests()))
                load = await engine.load()
                return replies, load.retractions if load else 0

        replies, counted = asyncio.run(ask())
    told = sum(reply.retractions for reply in replies)
    print(f"{told} retractions told with the answers, {counted} counted by the engine")
    assert counted
    assert told == counted
