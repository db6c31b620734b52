"""`transformers serve` behind the same protocol."""

import asyncio
import io

import pytest
from PIL import Image

from handler.engine.api import EngineName, EngineRequest
from handler.engine.launch import start_engine
from handler.settings import Settings


def test_it_starts_reads_and_stops(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GLMOCR_ENGINE", "transformers")
    buffer = io.BytesIO()
    Image.new("RGB", (280, 56), "white").save(buffer, "JPEG")
    request = EngineRequest("Text Recognition:", buffer.getvalue(), 16, repetition_penalty=1.1)
    with start_engine(Settings.from_env()) as boot:
        engine = boot.wait_ready()
        assert engine.facts.name is EngineName.TRANSFORMERS

        async def ask() -> str:
            async with engine:
                return (await engine.complete(request)).finish_reason

        assert asyncio.run(ask()) in ("stop", "length")
    assert boot.server is not None
    assert not boot.server.alive()
