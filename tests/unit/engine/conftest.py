"""Small real engine processes, and clients for them."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.engine.api import EngineName
from handler.engine.client import HttpEngine
from handler.engine.server import EngineServer, free_port

SMALL_ENGINE = Path(__file__).with_name("small_engine.py")
SAMPLES = Path(__file__).with_name("samples")
KEY = "a-key-for-this-boot"


def small_engine_argv(port: int, *flags: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", str(SMALL_ENGINE), "--port", str(port), *flags)


@pytest.fixture
def small_engine(tmp_path: Path) -> Callable[..., EngineServer]:
    """A server that is not started yet; the flags are `small_engine.py`'s."""

    def make(*flags: str, grace_s: float = 5.0, env: dict[str, str] | None = None) -> EngineServer:
        port = free_port(0)
        environment = {
            "PATH": os.environ["PATH"],
            "ENGINE_API_KEY": KEY,
            "ABORTED": str(tmp_path / "aborted"),
            **(env or {}),
        }
        log = logging.getLogger("handler.engine")
        return EngineServer(small_engine_argv(port, *flags), environment, port, log, secret=KEY, grace_s=grace_s)

    return make


def client_of(server: EngineServer, **options: object) -> HttpEngine:
    return HttpEngine(
        server.url,
        name=EngineName.SGLANG,
        model="glm-ocr",
        api_key=KEY,
        alive=server.alive,
        **options,  # type: ignore[arg-type]
    )


async def written(path: Path, within_s: float = 5.0) -> str:
    for _ in range(int(within_s / 0.02)):
        if path.exists() and path.read_text():
            return path.read_text()
        await asyncio.sleep(0.02)
    raise AssertionError(f"{path} was not written")
