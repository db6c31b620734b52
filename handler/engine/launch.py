"""From the settings to an engine that answers, whichever it is.

    with start_engine(settings) as boot:   # returns at once, the child is starting
        ...                                # patches, layout model
        engine = boot.wait_ready()         # an `Engine`, with its facts read

Leaving the block ends the child and everything it spawned. The HTTP client is imported only once the child is starting:
it takes as long to import as everything before it.
"""

import asyncio
import logging
import secrets
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from handler.engine.api import EngineName
from handler.engine.commands import KEY_VARIABLE, Command, command_for
from handler.engine.gpu import Gpu, visible_gpus
from handler.engine.server import EngineServer, EngineStartError, free_port
from handler.errors import SettingsError
from handler.schema import JsonValue
from handler.settings import Settings, child_environment

if TYPE_CHECKING:
    from handler.engine.client import HttpEngine

log = logging.getLogger("handler.engine")

EXTERNAL_POLL_S = 1.0
TAIL_LINES = 40


class EngineBoot:
    """An engine that is starting, and the owner of its process. `server` is None for an external one."""

    def __init__(self, settings: Settings, command: Command | None, *, url: str, key: str | None) -> None:
        self._settings = settings
        self._url = url
        self.key = key
        self.command = command
        self.server: EngineServer | None = None

    def __enter__(self) -> Self:
        if self.command is not None:
            self.server = self._start(self.command)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.server is not None:
            self.server.stop()

    def wait_ready(self) -> "HttpEngine":
        """Block until the engine answers, then read its facts. Raises `EngineStartError`. Not from inside a loop."""
        return asyncio.run(self._until_ready())

    @property
    def wants_nextn(self) -> bool:
        """Whether the profile turns speculative decoding on."""
        return self.command is not None and "--speculative-algorithm" in self.command.argv(0)

    @property
    def needs_gpu(self) -> bool:
        """Whether the engine must sit on a GPU of this machine."""
        return self.command is not None and self.command.needs_gpu

    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs it may use, as they are now."""
        return visible_gpus(self._settings.cuda_visible_devices)

    def described(self) -> dict[str, JsonValue]:
        """For `debug.boot`: how the engine was started, and on what."""
        if self.server is None or self.command is None:
            return {"url": self._url}
        gpus: list[JsonValue] = [gpu.as_json() for gpu in self.gpus()]
        return {"profile": self.command.profile, "argv": list(self.server.argv), "gpus": gpus}

    def last_words(self) -> dict[str, JsonValue]:
        """For `debug.engine` once the engine is gone."""
        if self.server is None:
            return {}
        return {"exit_code": self.server.exit_code(), "tail": list(self.server.tail(TAIL_LINES))}

    async def _until_ready(self) -> "HttpEngine":
        timeout_s = self._settings.engine_start_timeout_s
        if self.server is None:
            engine = self._client(self._url, None)
            async with engine:
                await _wait_external(engine, timeout_s)
                await engine.describe()
            return engine
        try:
            return await self._child_ready(self.server, timeout_s)
        except EngineStartError:
            if self.command is None or not self.command.can_step_down(self.server.tail()):
                raise
        self.command = self.command.stepped_down()
        log.warning("the engine ran out of memory at its start; trying once more as %s", self.command.profile)
        self.server.stop()
        self.server = self._start(self.command)
        return await self._child_ready(self.server, timeout_s)

    async def _child_ready(self, server: EngineServer, timeout_s: float) -> "HttpEngine":
        async with self._client(server.url, server) as engine:
            await server.wait_ready(engine.ready, timeout_s)
            await engine.describe()
            return engine

    def _client(self, url: str, server: EngineServer | None) -> "HttpEngine":
        from handler.engine.client import Deadlines, HttpEngine

        return HttpEngine(
            url,
            name=self._settings.glmocr_engine,
            model=(self.command and self.command.model) or self._settings.engine_model,
            api_key=self.key,
            deadlines=Deadlines.for_request(self._settings.engine_request_timeout_s),
            alive=server.alive if server is not None else None,
        )

    def _start(self, command: Command) -> EngineServer:
        port = free_port(self._settings.sglang_port)
        env = {**child_environment(), **command.env}
        if self.key:
            env[KEY_VARIABLE] = self.key
        server = EngineServer(command.argv(port), env, port, log, secret=self.key)
        server.start()
        return server


def start_engine(settings: Settings) -> EngineBoot:
    """The engine the settings name, as a context manager. Finds (or fetches) the weights of one that is ours."""
    if settings.glmocr_engine is not EngineName.EXTERNAL:
        return EngineBoot(settings, command_for(settings), url="", key=secrets.token_urlsafe(24))
    if not settings.engine_url:
        raise SettingsError("ENGINE_URL must be set with GLMOCR_ENGINE=external: its base address")
    key = settings.engine_api_key.get_secret_value() if settings.engine_api_key else None
    return EngineBoot(settings, None, url=settings.engine_url.rstrip("/").removesuffix("/v1"), key=key)


async def _wait_external(engine: "HttpEngine", deadline_s: float) -> None:
    log.info("waiting for the engine at %s", engine.url)
    deadline = time.monotonic() + deadline_s
    while not await engine.ready():
        if await engine.refuses_key():
            raise EngineStartError(f"the engine at {engine.url} refuses the key; check ENGINE_API_KEY")
        if time.monotonic() > deadline:
            raise EngineStartError(
                f"the engine at {engine.url} did not answer for {deadline_s:.0f} s; check ENGINE_URL"
            )
        await asyncio.sleep(EXTERNAL_POLL_S)
