"""The OpenAI-compatible wire as the engine speaks it: bodies out, answers in. No I/O of its own."""

import asyncio
import json
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import aiohttp
import pybase64
from aiohttp.abc import AbstractStreamWriter

from handler.engine.api import EngineBusy, EngineRefused, EngineReply, EngineRequest

WRITE_SLICE = 256 * 1024
RETRYABLE = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS}
MESSAGE_LIMIT = 500
PICTURE_PREFIX = "data:image/jpeg;base64,"
PICTURE = "@picture@"
"""Where the picture's base64 goes in a body serialised without it."""


class Body(aiohttp.Payload):
    """A request body in parts, none of them copied, with a deadline for sending it."""

    def __init__(self, parts: tuple[bytes, ...], deadline_s: float) -> None:
        super().__init__(parts, content_type="application/json")
        self._parts = parts
        self._deadline_s = deadline_s
        self._size = sum(map(len, parts))

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The whole body as text."""
        return b"".join(self._parts).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Send it. Raises `TimeoutError` when nobody reads it in time."""
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """Send it; it is always sent whole."""
        async with asyncio.timeout(self._deadline_s):
            for part in self._parts:
                for start in range(0, len(part), WRITE_SLICE):
                    await writer.write(memoryview(part)[start : start + WRITE_SLICE])


def request_body(request: EngineRequest, model: str, *, ask_meta: bool = False) -> tuple[bytes, ...]:
    """The JSON of one chat completion, assembled around the picture's base64 instead of serialising it.

    `ask_meta`: SGLang shall tell how the answer came about, its retractions among it; other servers know no such field.
    """
    head, tail = _around_picture(model, request.prompt, request.max_tokens, request.repetition_penalty, ask_meta)
    return head, pybase64.b64encode(request.jpeg), tail


@lru_cache(maxsize=1024)
def _around_picture(
    model: str, prompt: str, max_tokens: int, penalty: float | None, ask_meta: bool
) -> tuple[bytes, bytes]:
    """What stands before and after the picture; it differs between few regions."""
    options: dict[str, Any] = {"model": model, "max_tokens": max_tokens, "temperature": 0.0}
    if ask_meta:
        options["return_meta_info"] = True
    if penalty is not None:
        options["repetition_penalty"] = penalty
    picture = {"type": "image_url", "image_url": {"url": PICTURE_PREFIX + PICTURE}}
    options["messages"] = [{"role": "user", "content": [picture, {"type": "text", "text": prompt}]}]
    head, _, tail = json.dumps(options).partition(PICTURE)
    return head.encode(), tail.encode()


def model_loaded(body: bytes) -> bool:
    """Older servers answer JSON with `model_loaded`; the others an empty body."""
    try:
        answer = json.loads(body)
    except ValueError:
        return True
    return not isinstance(answer, dict) or answer.get("model_loaded", True) is True


def read_reply(status: int, raw: bytes) -> EngineReply:
    """What an HTTP answer means. Raises `EngineBusy` or `EngineRefused` with the engine's words."""
    try:
        answer = json.loads(raw)
    except ValueError:
        answer = None
    if status == HTTPStatus.OK:
        return _answer(answer)
    message = _message(answer, raw)
    if status in RETRYABLE or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise EngineBusy(f"HTTP {status}: {message}")
    raise EngineRefused(f"HTTP {status}: {message}")


def _answer(answer: Any) -> EngineReply:
    try:
        choice = answer["choices"][0]
        usage = answer.get("usage") or {}
        return EngineReply(
            text=choice["message"].get("content") or "",
            finish_reason=str(choice.get("finish_reason") or "stop"),
            prompt_tokens=int(usage.get("prompt_tokens") or 0),
            completion_tokens=int(usage.get("completion_tokens") or 0),
            retractions=int((choice.get("meta_info") or {}).get("num_retractions") or 0),
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise EngineBusy(f"the answer is not a chat completion: {error!r}") from error


def _message(answer: Any, raw: bytes) -> str:
    """The engine's words: SGLang's `message`, OpenAI's `error.message`, or the body."""
    if isinstance(answer, dict):
        error = answer.get("error")
        words = answer.get("message") or (error.get("message") if isinstance(error, dict) else error)
        if words:
            return str(words)[:MESSAGE_LIMIT]
    return raw.decode(errors="replace")[:MESSAGE_LIMIT]
