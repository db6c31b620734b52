import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Iterator

import aiohttp
import numpy as np
import pytest
import simplejpeg

from bench.measure import Simulator, simulator
from bench.scenarios import Scenario
from handler.engine.api import EngineLoad, EngineName, EngineRefused, EngineRequest
from handler.engine.client import HttpEngine


@pytest.fixture(scope="module")
def fast() -> Iterator[Simulator]:
    with simulator(Scenario("test", (), gpu="G2")) as engine:
        yield engine


@pytest.fixture
async def client(fast: Simulator) -> AsyncIterator[HttpEngine]:
    async with HttpEngine(f"http://127.0.0.1:{fast.port}", name=EngineName.EXTERNAL, model="glm-ocr") as engine:
        yield engine


def picture(width: int, height: int) -> bytes:
    jpeg: bytes = simplejpeg.encode_jpeg(np.full((height, width, 3), 255, np.uint8))
    return jpeg


async def load_until(engine: HttpEngine, wanted: Callable[[EngineLoad], bool]) -> None:
    async with asyncio.timeout(20):
        while (load := await engine.load()) is None or not wanted(load):
            continue


async def test_answers_like_the_real_engine_and_keeps_a_record(fast: Simulator, client: HttpEngine) -> None:
    fast.get("/bench/reset")
    whole = await client.complete(EngineRequest("Text Recognition:", picture(1400, 280), 512))
    short = await client.complete(EngineRequest("Table Recognition:", picture(1400, 280), 16))
    assert (whole.finish_reason, short.finish_reason) == ("stop", "length")
    assert whole.prompt_tokens == 50 * 10 + 12
    assert short.completion_tokens == 16
    assert short.text.startswith("<table>")
    report = fast.get("/bench/report")
    assert (report["requests"], report["complete"], report["cut_short"]) == (2, 1, 1)
    assert report["complete_answer_tokens"] == whole.completion_tokens
    assert 0 < report["ideal_s"] <= report["span_s"]


async def test_tells_its_facts_and_its_load(client: HttpEngine) -> None:
    facts = await client.describe()
    assert (facts.model, facts.slots, facts.context_length) == ("glm-ocr", 64, 32768)
    load = await client.load()
    assert load is not None
    assert (load.running, load.queued, load.retractions) == (0, 0, 0)


async def test_refuses_what_the_context_does_not_hold(client: HttpEngine) -> None:
    with pytest.raises(EngineRefused, match="maximum context length"):
        await client.complete(EngineRequest("Text Recognition:", picture(1400, 280), 32768))


async def test_a_text_without_a_picture_is_a_greeting_and_rubbish_is_refused(fast: Simulator) -> None:
    url = f"http://127.0.0.1:{fast.port}/v1/chat/completions"
    rubbish = json.dumps({"max_tokens": 9, "messages": [], "x": "base64," + base64.b64encode(b"no picture").decode()})
    async with aiohttp.ClientSession() as session:
        async with session.post(url, json={"max_tokens": 10, "messages": []}) as response:
            assert response.status == 200
        async with session.post(url, data=rubbish) as response:
            assert response.status == 400


async def test_a_client_that_leaves_frees_its_slot(fast: Simulator, client: HttpEngine) -> None:
    fast.get("/bench/reset")
    asked = asyncio.create_task(client.complete(EngineRequest("Table Recognition:", picture(2800, 2800), 9000)))
    await load_until(client, lambda load: load.running == 1)
    asked.cancel()
    await load_until(client, lambda load: load.running == 0)
    assert fast.get("/bench/report")["cancelled"] == 1
