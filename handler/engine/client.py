"""The engine as the worker calls it: one OpenAI-compatible HTTP client for all engines.

The session belongs to the running event loop and is made on first use; close it with `aclose` in the same loop.
"""

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from types import TracebackType
from typing import Self

import aiohttp
from yarl import URL

from handler.engine.api import (
    EngineBusy,
    EngineFacts,
    EngineGone,
    EngineLoad,
    EngineName,
    EngineReply,
    EngineRequest,
    EngineTimeout,
)
from handler.engine.facts import facts_from, load_from_loads, load_from_metrics
from handler.engine.wire import Body, model_loaded, read_reply, request_body

IDLE_CONNECTION_S = 3.0
"""Below the 5 s after which SGLang's server closes an idle connection, so that none is reused while it is closing."""
PROBE_TIMEOUT_S = 25.0
"""SGLang answers /health with 503 after 20 s of a silent scheduler."""
NO_ANSWER = 0
KEY_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
SETTLE_POLL_S = 0.05
SETTLE_POLLS = 40
"""2 s: how long a child that refuses connections may take to be seen dead."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds. An engine busy with prefills reads no bodies for a while: sending gets a deadline of its own."""

    connect: float = 10.0
    send: float = 120.0
    first_byte: float = 300.0
    """From the end of the body: queueing, prefill and the whole generation, since replies are not streamed."""
    total: float = 420.0

    @classmethod
    def for_request(cls, seconds: float) -> "Deadlines":
        """Deadlines for an engine that may take `seconds` per request."""
        base = cls()
        return replace(base, first_byte=seconds, total=seconds + base.connect + base.send)


class HttpEngine:
    """An engine behind HTTP. Implements `handler.engine.api.Engine`; cancelling a call closes its connection.

    `alive` tells whether the process behind `url` still runs; None for an engine that is not ours.
    """

    def __init__(
        self,
        url: str,
        *,
        name: EngineName,
        model: str,
        api_key: str | None = None,
        deadlines: Deadlines | None = None,
        alive: Callable[[], bool] | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._completions = URL(f"{self.url}/v1/chat/completions")
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._deadlines = deadlines or Deadlines()
        self._process_alive = alive
        self._facts = EngineFacts(name=name)
        self._session: aiohttp.ClientSession | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.last_reply = time.monotonic()
        """When the engine last answered a request, monotonic seconds."""
        self.in_flight = 0
        """Requests that wait for their answer."""
        self._probing: asyncio.Task[bool] | None = None
        self._hung = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the running loop's connections. The engine can be used again afterwards, also in another loop."""
        if self._session is not None and self._loop is asyncio.get_running_loop():
            await self._session.close()
        self._session = None

    @property
    def facts(self) -> EngineFacts:
        """As of the last `describe`."""
        return self._facts

    def alive(self) -> bool:
        """False once its process has ended or it was found to hang."""
        return not self._hung and (self._process_alive is None or self._process_alive())

    def declare_hung(self) -> None:
        """Nothing more is asked of this engine."""
        self._hung = True

    async def complete(self, request: EngineRequest) -> EngineReply:
        """One answer. Raises `EngineRefused`, `EngineBusy`, `EngineTimeout` or `EngineGone`."""
        if not self.alive():
            raise EngineGone("the engine's process has ended" if not self._hung else "the engine hangs")
        self.in_flight += 1
        try:
            return await self._ask(request)
        finally:
            self.in_flight -= 1

    async def _ask(self, request: EngineRequest) -> EngineReply:
        if self._facts.name is EngineName.TRANSFORMERS:  # `transformers serve` refuses fields that it does not know
            request = replace(request, repetition_penalty=None)
        ask_meta = self._facts.name is EngineName.SGLANG
        body = Body(request_body(request, self._model, ask_meta=ask_meta), self._deadlines.send)
        asked = time.monotonic()
        try:
            async with self._open().post(self._completions, data=body) as response:
                raw = await response.read()
                status = response.status
        except (TimeoutError, aiohttp.ServerTimeoutError) as error:
            raise await self._overdue(asked, error) from error
        except aiohttp.ClientError as error:
            raise await self._disconnected(error) from error
        self.last_reply = time.monotonic()
        self._hung = False
        return read_reply(status, raw)

    async def load(self) -> EngineLoad | None:
        """The load now, from /metrics, else from /v1/loads; None where there is neither or it does not answer."""
        status, body = await self._get("/metrics")
        if status == HTTPStatus.OK and (load := load_from_metrics(body.decode(errors="replace"))) is not None:
            return load
        return load_from_loads(await self._get_json("/v1/loads"))

    async def healthy(self) -> bool:
        """One health probe; may take seconds, since SGLang generates a token for it."""
        status, body = await self._get("/health")
        if status == HTTPStatus.NOT_FOUND:
            status, body = await self._get("/v1/models")
        return status == HTTPStatus.OK and model_loaded(body)

    async def ready(self) -> bool:
        """Whether a healthy engine that takes our key answers here: somebody else may have taken the port meanwhile."""
        if not await self.healthy():
            return False
        status, _ = await self._get("/v1/models")
        return status != NO_ANSWER and status not in KEY_REFUSED

    async def refuses_key(self) -> bool:
        """Whether something answers here that does not take our key."""
        return (await self._get("/v1/models"))[0] in KEY_REFUSED

    async def describe(self) -> EngineFacts:
        """Ask the engine about itself and keep the answer as `facts`."""
        info, models = await self._get_json("/server_info"), await self._get_json("/v1/models")
        self._facts = facts_from(self._facts.name, info, models, self._model)
        return self._facts

    def _open(self) -> aiohttp.ClientSession:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop:
            d = self._deadlines
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_CONNECTION_S),
                timeout=aiohttp.ClientTimeout(total=d.total, sock_connect=d.connect, sock_read=d.first_byte),
                headers=self._headers,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            self._loop = loop
        return self._session

    async def _get(self, path: str) -> tuple[int, bytes]:
        """Status and body of a small request; `NO_ANSWER` as status where there is none."""
        timeout = aiohttp.ClientTimeout(total=PROBE_TIMEOUT_S)
        try:
            async with self._open().get(self.url + path, timeout=timeout) as response:
                return response.status, await response.read()
        except (TimeoutError, aiohttp.ClientError):
            return NO_ANSWER, b""

    async def _get_json(self, path: str) -> object:
        """The JSON at `path`; None where there is none."""
        status, body = await self._get(path)
        try:
            return json.loads(body) if status == HTTPStatus.OK else None
        except ValueError:
            return None

    async def _disconnected(self, error: aiohttp.ClientError) -> EngineBusy | EngineGone:
        """What a broken or refused connection means. A child drops its connections a moment before it is seen dead."""
        refused = isinstance(error, aiohttp.ClientConnectorError)
        if self._process_alive is None:
            return EngineGone(f"nothing listens at {self.url}") if refused else EngineBusy(f"connection lost: {error}")
        for _ in range(SETTLE_POLLS if refused else 1):
            if not self._process_alive():
                return EngineGone("the engine's process has ended")
            await asyncio.sleep(SETTLE_POLL_S)
        return EngineBusy(f"connection lost: {error or type(error).__name__}")

    async def _overdue(self, asked: float, error: Exception) -> EngineTimeout | EngineGone:
        """What a missed deadline means: an engine that answered others meanwhile is slow, not dead."""
        if self.last_reply < asked and not await self.responds():
            self.declare_hung()
            return EngineGone("the engine hangs: a request missed its deadline and no probe is answered")
        return EngineTimeout(f"no answer within the deadline: {error or type(error).__name__}")

    async def responds(self) -> bool:
        """A health probe shared by everyone who asks at the same time, so that probes never overlap."""
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self.healthy())
        return await asyncio.shield(self._probing)
