"""From the settings to an engine that answers, whichever it is.

    with start_engine(settings, model_dir) as boot:   # returns at once, the child is starting
        ...                                           # patches, layout model
        engine = boot.wait_ready()                    # an `Engine`, with its facts read

Leaving the block ends the child and everything it spawned.
"""

import asyncio
import logging
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from handler.engine.api import EngineName
from handler.engine.client import Deadlines, HttpEngine
from handler.engine.server import LOOPBACK, EngineServer, EngineStartError, free_port
from handler.errors import SettingsError
from handler.settings import Settings, child_environment

log = logging.getLogger("handler.engine")

KEY_VARIABLE = "ENGINE_API_KEY"
"""How a child learns the bearer key of this boot; never on a command line, where anyone can read it."""
EXTERNAL_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class Command:
    """One way to start an engine: its arguments for a port, and what it needs in its environment."""

    argv: Callable[[int], tuple[str, ...]]
    env: dict[str, str] = field(default_factory=dict)


class EngineBoot:
    """An engine that is starting, and the owner of its process. `server` is None for an external one."""

    def __init__(self, settings: Settings, command: Command | None, *, url: str, key: str | None) -> None:
        self._settings = settings
        self._command = command
        self._url = url
        self._key = key
        self.server: EngineServer | None = None

    def __enter__(self) -> Self:
        if self._command is not None:
            self._start(self._command)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.server is not None:
            self.server.stop()

    def wait_ready(self) -> HttpEngine:
        """Block until the engine answers, then read its facts. Raises `EngineStartError`. Not from inside a loop."""
        return asyncio.run(self._until_ready())

    def tail(self, count: int = 40) -> list[str]:
        """The last lines the engine printed."""
        return self.server.tail(count) if self.server is not None else []

    async def _until_ready(self) -> HttpEngine:
        async with self._client() as engine:
            if self.server is not None:
                await self.server.wait_ready(engine.healthy, self._settings.engine_start_timeout_s)
            else:
                await _wait_external(engine, self._settings.engine_start_timeout_s)
            await engine.describe()
            return engine

    def _client(self) -> HttpEngine:
        return HttpEngine(
            self.server.url if self.server is not None else self._url,
            name=self._settings.glmocr_engine,
            model=self._settings.engine_model,
            api_key=self._key,
            deadlines=Deadlines.for_request(self._settings.engine_request_timeout_s),
            alive=self.server.alive if self.server is not None else None,
        )

    def _start(self, command: Command) -> None:
        port = free_port(self._settings.sglang_port)
        env = {**child_environment(), **command.env}
        if self._key:
            env[KEY_VARIABLE] = self._key
        self.server = EngineServer(command.argv(port), env, port, log, secret=self._key)
        self.server.__enter__()


def start_engine(settings: Settings, model_dir: Path | None = None) -> EngineBoot:
    """The engine the settings name, as a context manager. `model_dir`: GLM-OCR's weights, where the engine is ours."""
    if settings.glmocr_engine is EngineName.EXTERNAL:
        if not settings.engine_url:
            raise SettingsError("ENGINE_URL must be set with GLMOCR_ENGINE=external: its base address, without /v1")
        key = settings.engine_api_key.get_secret_value() if settings.engine_api_key else None
        return EngineBoot(settings, None, url=settings.engine_url.rstrip("/").removesuffix("/v1"), key=key)
    return EngineBoot(settings, _command(settings, model_dir), url="", key=secrets.token_urlsafe(24))


def _command(settings: Settings, model_dir: Path | None) -> Command:
    if settings.glmocr_engine is EngineName.RAPIDOCR:
        return Command(_rapidocr_argv)
    raise EngineStartError(f"{settings.glmocr_engine} cannot be started yet")


def _rapidocr_argv(port: int) -> tuple[str, ...]:
    return (sys.executable, "-m", "handler.engine.rapidocr_server", "--host", LOOPBACK, "--port", str(port))


async def _wait_external(engine: HttpEngine, deadline_s: float) -> None:
    deadline = time.monotonic() + deadline_s
    while not await engine.healthy():
        if time.monotonic() > deadline:
            raise EngineStartError(
                f"the engine at {engine.url} did not answer for {deadline_s:.0f} s; check ENGINE_URL"
            )
        await asyncio.sleep(EXTERNAL_POLL_S)
