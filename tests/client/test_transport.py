"""Both shells' HTTP against servers that misbehave below HTTP: what was sent, what came, and how it failed."""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest
from glmocr_runpod.aio import AsyncRunner
from glmocr_runpod.config import Config
from glmocr_runpod.effects import Break, Method, NoAnswer, Outcome, Request, Response, send
from glmocr_runpod.protocol import Again, Unclear, read_status, read_submission
from glmocr_runpod.transport import RequestsTransport

KEY = "rp_secret"
Behaviour = Callable[[socket.socket], None]


@contextlib.contextmanager
def server(behaviour: Behaviour) -> Iterator[str]:
    """Accepts connections and does as told with each; its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    behaviour(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v2"
    finally:
        stopped.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def over_requests(url: str, request: Request) -> Outcome:
    transport = RequestsTransport(f"{url}/e", KEY)
    try:
        return transport.send(request)
    finally:
        transport.close()


def over_aiohttp(url: str, request: Request) -> Outcome:
    async def exchange() -> Outcome:
        runner = AsyncRunner(Config(runpod_api_key=KEY, runpod_endpoint_id="e", runpod_api_url=url))
        try:
            return await runner.run(send(request))
        finally:
            await runner.close()

    return asyncio.run(exchange())


shells = pytest.mark.parametrize("exchange", [over_requests, over_aiohttp])
Exchange = Callable[[str, Request], Outcome]
RUN = Request(Method.POST, "run", b'{"input": {}}', deadline_s=2.0, fresh=True)
STATUS = Request(Method.GET, "status/1", deadline_s=2.0)


def received(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data or (b"POST" in data and not data.endswith(b"}")):
        chunk = connection.recv(65536)
        if not chunk:
            break
        data += chunk
    return data


def answering(answer: bytes) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        received(connection)
        connection.sendall(answer)

    return behave


@shells
def test_a_whole_answer(exchange: Exchange) -> None:
    seen: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        seen.append(received(connection))
        connection.sendall(b"HTTP/1.1 429 Busy\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}")

    with server(behave) as url:
        outcome = exchange(url, RUN)
    assert isinstance(outcome, Response)
    assert (outcome.status, outcome.body, outcome.headers["retry-after"]) == (429, b"{}", "7")
    assert seen[0].startswith(b"POST /v2/e/run ")
    assert b"authorization: bearer rp_secret" in seen[0].lower()


@shells
def test_the_key_goes_to_the_endpoint_only(exchange: Exchange) -> None:
    seen: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        seen.append(received(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with server(behave) as url:
        exchange("http://elsewhere", Request(Method.GET, f"{url}/result", authorised=False))
    assert KEY.encode() not in seen[0]


@shells
def test_redirects_are_not_followed(exchange: Exchange) -> None:
    with server(answering(b"HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:9/\r\nContent-Length: 0\r\n\r\n")) as url:
        outcome = exchange(url, RUN)
    assert isinstance(outcome, Response)
    assert outcome.status == 307


@shells
def test_nobody_listens(exchange: Exchange) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    outcome = exchange(f"http://127.0.0.1:{port}/v2", RUN)
    assert isinstance(outcome, NoAnswer)
    assert outcome.how is Break.NOT_SENT


@shells
def test_no_such_host(exchange: Exchange) -> None:
    outcome = exchange("http://no-such-host.invalid/v2", RUN)
    assert isinstance(outcome, NoAnswer)
    assert outcome.how is Break.NOT_SENT


@shells
@pytest.mark.parametrize("url", ["no-scheme/v2", "http://[half/v2", "ftp://127.0.0.1/v2"])
def test_an_address_that_is_none(exchange: Exchange, url: str) -> None:
    outcome = exchange(url, RUN)
    assert isinstance(outcome, NoAnswer)
    assert outcome.how is Break.NOT_SENT


def test_a_proxy_that_lets_nobody_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(connection: socket.socket) -> None:
        received(connection)
        connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with server(refuse) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.removesuffix("/v2"))
        monkeypatch.setenv("NO_PROXY", "")
        outcome = over_requests("https://example.invalid/v2", RUN)
    assert isinstance(outcome, NoAnswer)
    assert outcome.how is Break.NOT_SENT


@shells
def test_a_reset_after_the_request(exchange: Exchange) -> None:
    def behave(connection: socket.socket) -> None:
        received(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with server(behave) as url:
        outcome = exchange(url, RUN)
    assert isinstance(outcome, NoAnswer)
    assert outcome.how is Break.BROKEN


@shells
@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhell",
        b"not http at all\r\n\r\n",
    ],
)
def test_half_an_answer_is_none(exchange: Exchange, answer: bytes) -> None:
    with server(answering(answer)) as url:
        outcome = exchange(url, RUN)
    assert isinstance(outcome, NoAnswer)
    assert outcome.how is Break.BROKEN


@shells
@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 O", b"HTTP/1.1 200 OK\r\n"])
def test_half_a_head_means_nothing(exchange: Exchange, answer: bytes) -> None:
    with server(answering(answer)) as url:
        outcome = exchange(url, RUN)
    assert isinstance(read_submission(outcome), Unclear)
    assert isinstance(read_status(outcome), Again)


@shells
@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"])
def test_a_slow_loris_meets_the_deadline(exchange: Exchange, head: bytes) -> None:
    stopped = threading.Event()

    def behave(connection: socket.socket) -> None:
        received(connection)
        connection.sendall(head)
        while not stopped.wait(0.05):
            connection.sendall(b"x")

    with server(behave) as url:
        outcome = exchange(url, Request(Method.GET, "status/1", deadline_s=0.6))
        stopped.set()
    assert isinstance(outcome, NoAnswer)
    assert outcome.how is Break.TIMEOUT


@shells
def test_silence_meets_the_deadline(exchange: Exchange) -> None:
    stopped = threading.Event()

    def behave(connection: socket.socket) -> None:
        received(connection)
        stopped.wait(10)

    with server(behave) as url:
        outcome = exchange(url, Request(Method.POST, "run", b"{}", deadline_s=0.5, fresh=True))
        stopped.set()
    assert isinstance(outcome, NoAnswer)
    assert outcome.how is Break.TIMEOUT


@shells
def test_a_submission_does_not_reuse_a_connection(exchange: Exchange) -> None:
    seen: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        seen.append(received(connection))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with server(behave) as url:
        exchange(url, RUN)
    assert b"connection: close" in seen[0].lower()


def test_keys_are_not_in_messages() -> None:
    outcome = over_requests("http://no-such-host.invalid/v2", RUN)
    assert isinstance(outcome, NoAnswer)
    assert KEY not in outcome.message
