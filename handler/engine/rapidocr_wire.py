"""The shapes of SGLang's HTTP interface that the embedded engine answers in (recorded from SGLang 0.5.23)."""

import base64
import binascii
import re
import time
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

IMAGE_TOKEN_SIDE = 28
"""One image token stands for a square of this many pixels a side."""
PROMPT_OVERHEAD = 8
"""Tokens of GLM-OCR's chat template around prompt and picture."""
DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,", re.ASCII)
TOKEN = re.compile(r" ?[A-Za-z]{1,6}|\d|\s|.", re.DOTALL)
"""About what GLM's tokenizer makes of Latin and of Chinese text."""


class BadRequest(Exception):
    """The request is wrong and will be so again: 400."""


class ImageUrl(BaseModel):
    """Where the picture is; only `data:` is taken."""

    url: str


class Part(BaseModel):
    """One part of a message."""

    type: Literal["text", "image_url"]
    text: str = ""
    image_url: ImageUrl | None = None


class Message(BaseModel):
    """One message; `content` is text or parts."""

    role: str = "user"
    content: str | list[Part]


class ChatRequest(BaseModel):
    """What the engine understands of a chat completion; like SGLang it takes unknown fields and any model name."""

    model_config = ConfigDict(extra="ignore")

    model: str = "default"
    messages: Annotated[list[Message], Field(min_length=1)]
    max_tokens: int | None = None
    max_completion_tokens: int | None = None

    @property
    def prompt(self) -> str:
        """All text of all messages."""
        return "\n".join(part.text for part in self._parts() if part.text)

    def picture(self) -> bytes:
        """The one picture's bytes. Raises `BadRequest` when there is none, or it is not a `data:` URL."""
        urls = [part.image_url.url for part in self._parts() if part.image_url]
        if len(urls) != 1:
            raise BadRequest(f"exactly one image is read per request, got {len(urls)}.")
        head = DATA_URL.match(urls[0])
        if not head:
            raise BadRequest(f"{_LOADING} only data:image/...;base64 URLs are read, got {urls[0][:32]!r}.")
        try:
            return base64.b64decode(urls[0][head.end() :], validate=True)
        except binascii.Error:
            raise BadRequest(f"{_LOADING} Non-base64 digit found") from None

    def budget(self) -> int | None:
        """The most tokens the answer may have; None for as many as the context leaves."""
        budget = self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens
        if budget is not None and budget < 0:
            raise BadRequest(f"max_new_tokens must be at least 0, got {budget}.")
        return budget

    def _parts(self) -> list[Part]:
        parts: list[Part] = []
        for message in self.messages:
            content = message.content
            parts += [Part(type="text", text=content)] if isinstance(content, str) else content
        return parts


_LOADING = "An exception occurred while loading IMAGE data at index 0:"


def undecodable(reason: str) -> BadRequest:
    """The picture's bytes are not a picture."""
    return BadRequest(f"{_LOADING} Could not decode image: {reason}")


def image_tokens(width: int, height: int) -> int:
    """Tokens a picture of `width` x `height` pixels takes in the prompt."""
    return max(1, round(width / IMAGE_TOKEN_SIDE)) * max(1, round(height / IMAGE_TOKEN_SIDE))


def cut_to_tokens(text: str, limit: int | None) -> tuple[str, int, bool]:
    """The first `limit` tokens of a text, how many there are, and whether some were cut off."""
    tokens = TOKEN.findall(text)
    if limit is None or len(tokens) < limit:
        return text, len(tokens) + 1, False
    return "".join(tokens[:limit]), limit, True


def check_context(prompt_tokens: int, budget: int | None, context: int) -> None:
    """Refuse what cannot fit, in SGLang's words."""
    total = prompt_tokens + (budget or 0)
    if prompt_tokens >= context:
        raise BadRequest(
            f"The input ({prompt_tokens} tokens) is longer than the model's context length ({context} tokens)."
        )
    if total > context:
        raise BadRequest(
            f"Requested token count exceeds the model's maximum context length of {context} tokens. You requested a "
            f"total of {total} tokens: {prompt_tokens} tokens from the input messages and {budget} tokens for the "
            "completion. Please reduce the number of tokens in the input messages or the completion to fit within "
            "the limit."
        )


def completion(model: str, text: str, prompt_tokens: int, completion_tokens: int, cut: bool) -> dict[str, Any]:
    """A chat completion with one choice."""
    return {
        "id": uuid.uuid4().hex,
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text, "reasoning_content": None},
                "logprobs": None,
                "finish_reason": "length" if cut else "stop",
                "matched_stop": None,
            }
        ],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def error(status: int, message: str, kind: str = "BadRequestError") -> dict[str, Any]:
    """The body of a refusal."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": status}
