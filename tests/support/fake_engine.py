"""A text engine as a process: OpenAI's and SGLang's addresses, N slots, answers that name the page it was shown.

    python -m tests.support.fake_engine --slots 16 [--port 0]

prints one line with its address. It reads the code of `coded_pages` out of each picture and answers what stands on
the page, `text_of`; other pictures are answered by their hash. `/control` sets how it behaves, `/record` tells what it
was asked. A request whose caller goes away is aborted, as SGLang does. `--journal FILE` gets a line
`asked PAGE` when a request arrives and `answered PAGE` when it ends well, so that both are known even of an engine that
was killed.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import random
import sys
import time
from collections import Counter, deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from emulator.clock import Signal
from tests.support.coded_pages import Unreadable, read_code, text_of

CONTEXT = 32768
VERSION = "0.5.17"
MODEL = "glm-ocr"
PICTURE = "data:image/jpeg;base64,"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How requests are answered; `/control` replaces fields of it."""

    seconds: float = 0.05
    """Time of one request in its slot."""
    text: str | None = None
    """Said in place of what the picture shows."""
    filler: int = 0
    """So many random characters after it, the same for the same picture."""
    finish_reason: str = "stop"
    status: int = 200
    """Anything else fails the next `failures` requests with it; no limit when that is null."""
    failures: int | None = None
    healthy: bool = True
    hang: tuple[str, ...] = ()
    """Answers that are never given: requests for these pages stay in their slot until their caller goes away."""


@dataclass(slots=True)
class Record:
    """What it was asked. `requests` counts arrivals, `pages` them by what the picture showed."""

    requests: int = 0
    completed: int = 0
    aborted: int = 0
    running: int = 0
    queued: int = 0
    peak_running: int = 0
    last_abort: float | None = None
    pages: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        """For `/record`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__} | {"pages": dict(self.pages)}


class FakeEngine:
    """The handlers."""

    def __init__(self, slots: int, api_key: str | None, journal: Path | None) -> None:
        self.behaviour = Behaviour()
        self.record = Record()
        self._slots = slots
        self._free = slots
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._api_key = api_key
        self._journal = journal
        self._changed = Signal()

    def app(self) -> web.Application:
        """Everything it serves."""
        app = web.Application(client_max_size=1 << 28)
        app.add_routes(
            [
                web.post("/v1/chat/completions", self.complete),
                web.get("/v1/models", self.models),
                web.get("/server_info", self.server_info),
                web.get("/v1/loads", self.loads),
                web.get("/metrics", self.metrics),
                web.get("/health", self.health),
                web.post("/control", self.control),
                web.get("/record", self.show_record),
                web.get("/wait", self.wait),
            ]
        )
        return app

    async def complete(self, request: web.Request) -> web.Response:
        """One answer, after waiting for a slot and working in it."""
        if self._api_key and request.headers.get("Authorization") != f"Bearer {self._api_key}":
            return web.json_response({"error": "Unauthorized"}, status=401)
        asked = await request.json()
        shown, says = _read(_picture(asked))
        self._note(shown)
        try:
            async with self._slot():
                if shown in self.behaviour.hang:
                    await asyncio.Event().wait()
                await asyncio.sleep(self.behaviour.seconds)
                response = self._answer(asked, says)
        except asyncio.CancelledError:
            self.record.aborted += 1
            self.record.last_abort = time.time()
            raise
        self.record.completed += 1
        self._write("answered", shown)
        return response

    async def models(self, request: web.Request) -> web.Response:
        """The one model."""
        model = {"id": MODEL, "object": "model", "owned_by": "sglang", "root": MODEL, "max_model_len": CONTEXT}
        return web.json_response({"object": "list", "data": [model]})

    async def server_info(self, request: web.Request) -> web.Response:
        """The keys of SGLang's that the worker reads."""
        return web.json_response(
            {
                "version": VERSION,
                "served_model_name": MODEL,
                "context_length": CONTEXT,
                "max_total_num_tokens": 4 * CONTEXT,
                "max_req_input_len": CONTEXT - 6,
                "internal_states": [{"effective_max_running_requests_per_dp": self._slots}],
            }
        )

    async def loads(self, request: web.Request) -> web.Response:
        """The load as JSON."""
        rank = {"dp_rank": 0, "num_running_reqs": self.record.running, "num_waiting_reqs": self.record.queued,
                "token_usage": self.record.running / self._slots, "max_total_num_tokens": 4 * CONTEXT}  # fmt: skip
        return web.json_response({"version": VERSION, "loads": [rank]})

    async def metrics(self, request: web.Request) -> web.Response:
        """The load as Prometheus text, with SGLang's names."""
        labels = f'{{model_name="{MODEL}",tp_rank="0"}}'
        values = {
            "num_running_reqs": self.record.running,
            "num_queue_reqs": self.record.queued,
            "token_usage": self.record.running / self._slots,
        }
        lines = [f"# TYPE sglang:{n} gauge\nsglang:{n}{labels} {float(v)}" for n, v in values.items()]
        return web.Response(text="\n".join(lines) + "\n")

    async def health(self, request: web.Request) -> web.Response:
        """Empty; 503 when told to be sick."""
        return web.Response(status=200 if self.behaviour.healthy else 503)

    async def control(self, request: web.Request) -> web.Response:
        """Replace fields of the behaviour; `{"reset": true}` begins a new record."""
        wish = await request.json()
        if wish.pop("reset", False):
            running, queued = self.record.running, self.record.queued
            self.record = Record(running=running, queued=queued)
        self.behaviour = replace(self.behaviour, **wish)
        return web.json_response({})

    async def show_record(self, request: web.Request) -> web.Response:
        """What it was asked so far."""
        return web.json_response(self.record.as_json())

    async def wait(self, request: web.Request) -> web.Response:
        """Answer once `?requests=` have arrived, `?page=` was asked for `?times=`, or, with neither, nothing runs."""
        query = request.query

        def settled() -> bool:
            if "requests" in query:
                return self.record.requests >= int(query["requests"])
            if "page" in query:
                return self.record.pages[query["page"]] >= int(query["times"])
            return not self.record.running and not self.record.queued

        while not settled():
            await self._changed.wait()
        return await self.show_record(request)

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        if self._free:
            self._free -= 1
        else:
            await self._queue()
        self.record.running += 1
        self.record.peak_running = max(self.record.peak_running, self.record.running)
        try:
            yield
        finally:
            self.record.running -= 1
            self._pass_on()
            self._changed.notify()

    async def _queue(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self.record.queued += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise
        finally:
            self.record.queued -= 1
            self._changed.notify()

    def _pass_on(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _answer(self, asked: Any, says: str) -> web.Response:
        behaviour = self.behaviour
        if behaviour.status != 200 and behaviour.failures != 0:
            if behaviour.failures is not None:
                self.behaviour = replace(behaviour, failures=behaviour.failures - 1)
            return web.json_response({"object": "error", "message": "as told"}, status=behaviour.status)
        text = behaviour.text if behaviour.text is not None else says
        if behaviour.filler:
            noise = random.Random(says).randbytes(behaviour.filler * 3 // 4)
            text += " " + base64.b64encode(noise).decode()
        message = {"role": "assistant", "content": text}
        return web.json_response(
            {
                "object": "chat.completion",
                "model": asked.get("model"),
                "choices": [{"index": 0, "message": message, "finish_reason": behaviour.finish_reason}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
            }
        )

    def _note(self, shown: str) -> None:
        self.record.requests += 1
        self.record.pages[shown] += 1
        self._changed.notify()
        self._write("asked", shown)

    def _write(self, event: str, shown: str) -> None:
        if self._journal:
            with self._journal.open("a") as journal:
                journal.write(f"{event} {shown}\n")


def _read(jpeg: bytes) -> tuple[str, str]:
    """What the picture shows, in short, and the text on it."""
    try:
        document, page = read_code(jpeg)
    except Unreadable:
        shown = f"picture {hashlib.sha256(jpeg).hexdigest()[:12]}"
        return shown, shown
    return f"document {document} page {page}", text_of(document, page)


def _picture(asked: Any) -> bytes:
    for part in asked["messages"][-1]["content"]:
        if part.get("type") == "image_url":
            return base64.b64decode(part["image_url"]["url"].removeprefix(PICTURE))
    return b""


async def serve(engine: FakeEngine, host: str, port: int) -> None:
    """Serve until cancelled."""
    runner = web.AppRunner(engine.app(), handler_cancellation=True, shutdown_timeout=0.5)
    await runner.setup()
    await web.TCPSite(runner, host, port, reuse_address=True).start()
    sys.stdout.write(f"http://{host}:{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.fake_engine")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--api-key")
    parser.add_argument("--journal", type=Path)
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(FakeEngine(options.slots, options.api_key, options.journal), options.host, options.port))


if __name__ == "__main__":
    main()
