import asyncio
import base64
import json
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest

from handler.engine.api import (
    EngineBusy,
    EngineFacts,
    EngineGone,
    EngineName,
    EngineRefused,
    EngineReply,
    EngineRequest,
    EngineTimeout,
)
from handler.engine.client import Deadlines, HttpEngine
from handler.engine.server import EngineServer
from handler.engine.wire import read_reply, request_body
from tests.unit.engine.conftest import KEY, SAMPLES, client_of, written

Make = Callable[..., EngineServer]
JPEG = b"\xff\xd8 not really a picture"


def request(prompt: str, jpeg: bytes = JPEG) -> EngineRequest:
    return EngineRequest(prompt=prompt, jpeg=jpeg, max_tokens=64)


@pytest.fixture
async def server(small_engine: Make) -> AsyncIterator[EngineServer]:
    with small_engine("--samples", str(SAMPLES)) as server:
        async with client_of(server) as engine:
            await server.wait_ready(engine.healthy, 10)
        yield server


async def test_an_answer_carries_picture_prompt_and_usage(server: EngineServer) -> None:
    async with client_of(server) as engine:
        reply = await engine.complete(request('Text "Recognition":'))
    said = json.loads(reply.text)
    assert said["prompt"] == 'Text "Recognition":'
    assert said["picture"] == "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
    assert said["max_tokens"] == 64
    assert (reply.finish_reason, reply.prompt_tokens, reply.completion_tokens) == ("stop", 7, 5)


@pytest.mark.parametrize(("name", "sent"), [(EngineName.SGLANG, True), (EngineName.TRANSFORMERS, False)])
async def test_engines_are_only_sent_what_they_know(server: EngineServer, name: EngineName, sent: bool) -> None:
    penalised = EngineRequest(prompt="read", jpeg=JPEG, max_tokens=8, repetition_penalty=1.1)
    async with HttpEngine(server.url, name=name, model="m", api_key=KEY) as engine:
        said = json.loads((await engine.complete(penalised)).text)
    assert ("repetition_penalty" in said["options"]) is sent
    assert ("return_meta_info" in said["options"]) is sent


@pytest.mark.parametrize(
    ("meta", "retractions"), [({"meta_info": {"num_retractions": 2}}, 2), ({"meta_info": None}, 0), ({}, 0)]
)
def test_an_answer_says_how_often_it_was_begun_anew(meta: dict[str, object], retractions: int) -> None:
    choice = {"message": {"content": "text"}, "finish_reason": "stop", **meta}
    assert read_reply(200, json.dumps({"choices": [choice]}).encode()).retractions == retractions


async def test_a_large_picture_arrives_whole(server: EngineServer) -> None:
    jpeg = os.urandom(3_000_000)
    async with client_of(server) as engine:
        reply = await engine.complete(request("read", jpeg))
    assert json.loads(reply.text)["picture"].endswith(base64.b64encode(jpeg).decode())


def test_the_body_is_json_and_holds_what_was_asked() -> None:
    wanted = EngineRequest(prompt="Tab\u00e9lle\n", jpeg=JPEG, max_tokens=9, repetition_penalty=1.1)
    body = json.loads(b"".join(request_body(wanted, "glm-ocr")))
    assert body["model"] == "glm-ocr"
    assert (body["max_tokens"], body["temperature"], body["repetition_penalty"]) == (9, 0.0, 1.1)
    picture, question = body["messages"][0]["content"]
    assert picture["image_url"]["url"] == "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
    assert question["text"] == "Tab\u00e9lle\n"
    assert "repetition_penalty" not in json.loads(b"".join(request_body(request("x"), "glm-ocr")))


@pytest.mark.parametrize("status", [400, 401, 404, 413, 422])
async def test_a_refused_request_is_refused(server: EngineServer, status: int) -> None:
    async with client_of(server) as engine:
        with pytest.raises(EngineRefused, match=f"HTTP {status}: as asked"):
            await engine.complete(request(f"status {status}"))


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_busy_engine_is_busy(server: EngineServer, status: int) -> None:
    async with client_of(server) as engine:
        with pytest.raises(EngineBusy, match=f"HTTP {status}: as asked"):
            await engine.complete(request(f"status {status}"))


async def test_a_dropped_connection_of_a_living_engine_is_busy(server: EngineServer) -> None:
    async with client_of(server) as engine:
        with pytest.raises(EngineBusy, match="connection lost"):
            await engine.complete(request("reset"))
        assert engine.alive()


async def test_a_dead_engine_is_gone_at_once_and_for_good(server: EngineServer) -> None:
    async with client_of(server) as engine:
        with pytest.raises((EngineBusy, EngineGone)):
            await engine.complete(request("exit"))
        with pytest.raises(EngineGone, match="process has ended"):
            await engine.complete(request("read"))
        assert not engine.alive()


async def test_nothing_listening_at_an_external_address_is_gone() -> None:
    async with HttpEngine("http://127.0.0.1:9", name=EngineName.EXTERNAL, model="m") as engine:
        with pytest.raises(EngineGone, match="nothing listens"):
            await engine.complete(request("read"))
        assert engine.alive()
        assert not await engine.healthy()
        assert await engine.load() is None


async def test_cancelling_closes_the_connection(server: EngineServer, tmp_path: Path) -> None:
    async with client_of(server) as engine:
        call = asyncio.create_task(engine.complete(request("wait 60")))
        await asyncio.wait({call}, timeout=0.3)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await written(tmp_path / "aborted") == "aborted"


async def test_a_slow_request_of_a_healthy_engine_is_late_not_dead(server: EngineServer) -> None:
    async with client_of(server, deadlines=Deadlines(first_byte=0.2)) as engine:
        with pytest.raises(EngineTimeout):
            await engine.complete(request("hang"))
        assert engine.alive()


async def test_a_hung_engine_is_gone(server: EngineServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.engine.client.PROBE_TIMEOUT_S", 0.3)
    engine_pid = psutil.Process(server.pid).children()[0].pid
    async with client_of(server, deadlines=Deadlines(first_byte=0.2)) as engine:
        os.kill(engine_pid, signal.SIGSTOP)
        try:
            calls = [engine.complete(request("read")) for _ in range(5)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            os.kill(engine_pid, signal.SIGCONT)
        assert [type(outcome) for outcome in outcomes] == [EngineGone] * 5
        assert not engine.alive()


async def test_an_engine_that_answered_others_meanwhile_is_not_probed(small_engine: Make) -> None:
    with small_engine("--stuck-health", "--samples", str(SAMPLES)) as server:
        async with client_of(server, deadlines=Deadlines(first_byte=0.6)) as engine:

            async def serves() -> bool:
                return await engine.load() is not None

            await server.wait_ready(serves, 10)
            slow = asyncio.create_task(engine.complete(request("hang")))
            await asyncio.wait({slow}, timeout=0.2)
            await engine.complete(request("read"))
            with pytest.raises(EngineTimeout):
                await slow
            assert engine.alive()


async def test_a_body_that_nobody_reads_has_a_deadline_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.engine.client.PROBE_TIMEOUT_S", 0.2)
    held: list[asyncio.StreamWriter] = []

    async def reader_that_stops(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        held.append(writer)  # Python 3.13 closes the connection of one that is forgotten

    listener = await asyncio.start_server(reader_that_stops, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    deadlines = Deadlines(send=0.2, first_byte=60, total=60)
    async with (
        listener,
        HttpEngine(f"http://127.0.0.1:{port}", name=EngineName.EXTERNAL, model="m", deadlines=deadlines) as engine,
    ):
        with pytest.raises((EngineTimeout, EngineGone)):
            await asyncio.wait_for(engine.complete(request("read", bytes(30_000_000))), 10)
        for writer in held:
            writer.transport.abort()


async def test_waiting_for_the_body_to_be_read_does_not_count_as_waiting_for_the_answer() -> None:
    async def slow_reader(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.6)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        answer = b'{"choices": [{"message": {"content": "late"}, "finish_reason": "stop"}]}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        writer.close()

    listener = await asyncio.start_server(slow_reader, "127.0.0.1", 0, limit=1 << 16)
    port = listener.sockets[0].getsockname()[1]
    deadlines = Deadlines(send=10, first_byte=0.4, total=20)
    async with (
        listener,
        HttpEngine(f"http://127.0.0.1:{port}", name=EngineName.EXTERNAL, model="m", deadlines=deadlines) as engine,
    ):
        reply = await engine.complete(request("read", bytes(20_000_000)))
    assert reply.text == "late"


async def test_it_describes_itself_from_the_recorded_answers(server: EngineServer) -> None:
    async with client_of(server) as engine:
        facts = await engine.describe()
        load = await engine.load()
    assert facts == engine.facts
    assert facts == EngineFacts(
        name=EngineName.SGLANG,
        version="0.5.23",
        model="glm-ocr",
        context_length=32768,
        kv_pool_tokens=32768,
        max_input_tokens=32762,
        slots=2048,
    )
    assert load is not None
    assert (load.running, load.queued, load.retractions) == (0, 0, 0)


async def test_facts_stay_empty_where_an_engine_tells_nothing(small_engine: Make) -> None:
    with small_engine() as server:
        async with client_of(server) as engine:
            await server.wait_ready(engine.healthy, 10)
            assert await engine.describe() == EngineFacts(name=EngineName.SGLANG)
            assert await engine.load() is None


async def test_an_engine_of_another_kind_is_described_as_far_as_it_goes() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        body = {b"/server_info": b"<html>hello</html>", b"/v1/models": b'{"data": [{"id": "other"}]}'}.get(path, b"")
        length = 5 if path == b"/metrics" else len(body)  # the metrics break off
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (length, body))
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with listener, HttpEngine(f"http://127.0.0.1:{port}", name=EngineName.EXTERNAL, model="m") as engine:
        assert await engine.ready()
        assert await engine.describe() == EngineFacts(name=EngineName.EXTERNAL, model="other")
        assert await engine.load() is None


async def test_somebody_elses_server_on_our_port_is_not_ready(server: EngineServer) -> None:
    async with HttpEngine(server.url, name=EngineName.SGLANG, model="m", api_key="not its key") as engine:
        assert await engine.healthy()
        assert not await engine.ready()


def test_one_engine_serves_one_loop_after_the_other(small_engine: Make) -> None:
    async def ask(engine: HttpEngine) -> EngineReply:
        async with engine:
            return await engine.complete(request("read"))

    with small_engine() as server:
        engine = client_of(server)
        asyncio.run(server.wait_ready(engine.healthy, 10))
        assert asyncio.run(ask(engine)).finish_reason == asyncio.run(ask(engine)).finish_reason == "stop"


def test_the_recorded_replies_mean_what_they_meant() -> None:
    expected = {
        "text_length": "stop",
        "image_small": "length",
        "aborted_by_abort_request": "abort",
        "max_tokens_0": "length",
        "text_ignore_eos_stop_str": "stop",
    }
    for path in sorted((SAMPLES / "replies").glob("*.json")):
        recorded = json.loads(path.read_text())
        raw = json.dumps(recorded["response"]).encode()
        if path.stem in expected:
            assert read_reply(recorded["status"], raw).finish_reason == expected[path.stem], path.stem
        else:
            with pytest.raises(EngineRefused, match=f"HTTP {recorded['status']}: "):
                read_reply(recorded["status"], raw)


@pytest.mark.parametrize(
    "raw", [b"", b"null", b"[]", b'{"choices": []}', b'{"choices": [{"message": null}]}', b"<html>"]
)
def test_an_answer_that_is_none_is_worth_another_try(raw: bytes) -> None:
    with pytest.raises(EngineBusy):
        read_reply(200, raw)


async def test_a_wrong_key_is_refused(server: EngineServer) -> None:
    async with HttpEngine(server.url, name=EngineName.SGLANG, model="m", api_key=KEY + "x") as engine:
        with pytest.raises(EngineRefused, match="Unauthorized"):
            await engine.complete(request("read"))
