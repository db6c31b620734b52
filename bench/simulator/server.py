"""The simulated engine behind HTTP, with the addresses of SGLang that the worker uses.

    python -m bench.simulator.server --gpu G2 [--slots 64] [--pool 65536]

prints `{"port": ...}` and serves on loopback until its standard input is closed. `/bench/reset` begins a new record,
`/bench/report` returns it.
"""

import argparse
import asyncio
import base64
import itertools
import json
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import httptools
import simplejpeg
import uvloop

from bench.simulator.answers import PROMPT_OVERHEAD_TOKENS, answer_text, answer_tokens, image_tokens
from bench.simulator.record import Record
from bench.simulator.scheduler import AMPLE_POOL, CONTEXT, GPUS, SLOTS, Gpu, Request, Scheduler

JPEG_HEADER_CHARS = 4096
MODEL = "glm-ocr"
PICTURE = b"base64,"


@dataclass(frozen=True, slots=True)
class Asked:
    """One chat completion as far as the simulation cares."""

    table: bool
    width: int
    height: int
    max_tokens: int

    @classmethod
    def parse(cls, body: bytes) -> "Asked":
        """Read a request without decoding its picture; one without a picture is a greeting.

        Raises `ValueError` or `KeyError` for anything unexpected.
        """
        start = body.find(PICTURE)
        if start < 0:
            return cls(False, 0, 0, int(json.loads(body)["max_tokens"]))
        start += len(PICTURE)
        end = body.index(b'"', start)
        options: dict[str, Any] = json.loads(body[:start] + body[end:])
        height, width, *_ = simplejpeg.decode_jpeg_header(
            base64.b64decode(body[start : min(end, start + JPEG_HEADER_CHARS)])
        )
        prompts = [part["text"] for part in options["messages"][-1]["content"] if part["type"] == "text"]
        return cls(any(p.startswith("Table") for p in prompts), width, height, int(options["max_tokens"]))


class SimulatedEngine:
    """Scheduler, record and clock of one simulated engine."""

    def __init__(self, gpu: Gpu, slots: int, pool: int) -> None:
        self.scheduler = Scheduler(gpu, slots=slots, pool=pool)
        self.record = Record(slots)
        self._numbers = itertools.count()
        self._incoming: deque[Request] = deque()
        self._arrival = asyncio.Event()
        self._waiting: dict[int, tuple[Asked, Connection]] = {}

    def reset(self) -> dict[str, object]:
        """Begin a new record; call it while nothing runs."""
        self.record = Record(self.scheduler.slots)
        self.scheduler.retractions = 0
        return {}

    def submit(self, asked: Asked, connection: "Connection") -> int:
        """Queue one request; its answer goes to `connection`."""
        request = Request(
            next(self._numbers),
            image_tokens(asked.width, asked.height) + PROMPT_OVERHEAD_TOKENS,
            answer_tokens(asked.table, asked.width, asked.height),
            asked.max_tokens,
            arrived=time.monotonic(),
        )
        self.record.arrived(request)
        self._waiting[request.number] = (asked, connection)
        if self.scheduler.gpu.free:
            self._answer(request, request.arrived)
        else:
            self._incoming.append(request)
            self._arrival.set()
        return request.number

    def abandon(self, number: int) -> None:
        """The client of this request has gone."""
        if self._waiting.pop(number, None) is not None:
            self.scheduler.cancel(number)
            self._incoming = deque(request for request in self._incoming if request.number != number)
            self.record.cancelled += 1

    @property
    def queued(self) -> int:
        """Requests that hold no slot."""
        return len(self.scheduler.queue) + len(self._incoming)

    async def run(self) -> None:
        """Step for ever. A late wake-up does not slow the simulated GPU: the next step starts where this one ended."""
        clock = time.monotonic
        now = clock()
        while True:
            self._take_until(now)
            seconds = self.scheduler.begin()
            if seconds is None:
                if not self._incoming:
                    self._arrival.clear()
                    await self._arrival.wait()
                now = max(now, self._incoming[0].arrived) if self._incoming else clock()
                continue
            self.record.stepped(now, seconds, len(self.scheduler.running), self.queued)
            now += seconds
            await asyncio.sleep(max(0.0, now - clock()))
            self.record.worst_lag_s = max(self.record.worst_lag_s, clock() - now)
            for request in self.scheduler.end():
                self._answer(request, now)

    def _take_until(self, now: float) -> None:
        while self._incoming and self._incoming[0].arrived <= now:
            self.scheduler.queue.append(self._incoming.popleft())

    def _answer(self, request: Request, now: float) -> None:
        request.finished = now
        self.record.finished(request)
        asked, connection = self._waiting.pop(request.number)
        tokens = min(request.answer_tokens, request.max_tokens)
        text = answer_text(asked.table, asked.width, asked.height, tokens, request.answer_tokens)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop" if request.complete else "length",
        }
        usage = {
            "prompt_tokens": request.prompt_tokens,
            "completion_tokens": tokens,
            "total_tokens": request.prompt_tokens + tokens,
        }
        identity = {"id": str(request.number), "object": "chat.completion", "model": MODEL}
        connection.answer(200, json.dumps({**identity, "choices": [choice], "usage": usage}))


class Connection(asyncio.Protocol):
    """One keep-alive connection; httptools calls the `on_...` methods."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self._engine = engine
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body: list[bytes] = []
        self._number: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._number is not None:
            self._engine.abandon(self._number)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()

    def on_message_begin(self) -> None:
        self._url, self._body = b"", []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._url == b"/v1/chat/completions":
            self._complete(b"".join(self._body))
        else:
            self.answer(*self._look_up(self._url.decode()))

    def answer(self, status: int, body: str, kind: str = "application/json") -> None:
        """Send one response and wait for the next request."""
        self._number = None
        raw = body.encode()
        head = f"HTTP/1.1 {status} -\r\nContent-Type: {kind}\r\nContent-Length: {len(raw)}\r\n\r\n"
        self._transport.write(head.encode() + raw)

    def _complete(self, body: bytes) -> None:
        try:
            asked = Asked.parse(body)
        except (ValueError, KeyError) as error:
            self.answer(400, json.dumps({"object": "error", "message": str(error), "code": 400}))
            return
        if image_tokens(asked.width, asked.height) + PROMPT_OVERHEAD_TOKENS + asked.max_tokens > CONTEXT:
            message = f"Requested token count exceeds the model's maximum context length of {CONTEXT} tokens."
            self.answer(400, json.dumps({"object": "error", "message": message, "code": 400}))
            return
        self._number = self._engine.submit(asked, self)

    def _look_up(self, path: str) -> tuple[int, str, str]:
        kind = "text/plain" if path == "/metrics" else "application/json"
        pages: dict[str, Callable[[], str]] = {
            "/health": lambda: "",
            "/metrics": lambda: metrics(self._engine),
            "/server_info": lambda: json.dumps(server_info(self._engine)),
            "/v1/loads": lambda: json.dumps({"loads": [loads(self._engine)]}),
            "/v1/models": lambda: json.dumps({"data": [{"id": MODEL, "max_model_len": CONTEXT}]}),
            "/bench/reset": lambda: json.dumps(self._engine.reset()),
            "/bench/report": lambda: json.dumps(self._engine.record.report(self._engine.scheduler)),
        }
        page = pages.get(path)
        return (200, page(), kind) if page else (404, "{}", kind)


def loads(engine: SimulatedEngine) -> dict[str, object]:
    """One entry of /v1/loads."""
    scheduler = engine.scheduler
    return {
        "num_running_reqs": len(scheduler.running),
        "num_waiting_reqs": engine.queued,
        "max_total_num_tokens": scheduler.pool,
        "max_running_requests": scheduler.slots,
        "token_usage": scheduler.used / scheduler.pool,
    }


def metrics(engine: SimulatedEngine) -> str:
    """/metrics under SGLang's names."""
    load = loads(engine)
    values = {
        "num_running_reqs": load["num_running_reqs"],
        "num_queue_reqs": load["num_waiting_reqs"],
        "token_usage": load["token_usage"],
        "num_retracted_requests_total": engine.scheduler.retractions,
    }
    return "".join(f'sglang:{name}{{model_name="{MODEL}"}} {float(str(value))}\n' for name, value in values.items())


def server_info(engine: SimulatedEngine) -> dict[str, object]:
    """/server_info, the keys that anybody reads."""
    scheduler = engine.scheduler
    return {
        "version": "simulated",
        "status": "ready",
        "served_model_name": MODEL,
        "context_length": CONTEXT,
        "max_total_num_tokens": scheduler.pool,
        "max_req_input_len": min(CONTEXT, scheduler.pool) - 6,
        "max_running_requests": scheduler.slots,
        "internal_states": [{"effective_max_running_requests_per_dp": scheduler.slots}],
    }


async def serve(gpu: Gpu, slots: int, pool: int) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    engine = SimulatedEngine(gpu, slots, pool)
    server = await loop.create_server(lambda: Connection(engine), "127.0.0.1", 0, backlog=1024)
    steps = asyncio.create_task(engine.run())
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    steps.cancel()
    server.close()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", choices=sorted(GPUS), default="G1")
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--pool", type=int, default=AMPLE_POOL)
    parser.add_argument("--slowed", type=float, default=1.0, help="how many times slower than it is")
    args = parser.parse_args()
    uvloop.run(serve(GPUS[args.gpu].slowed(args.slowed), args.slots, args.pool))


if __name__ == "__main__":
    main()
