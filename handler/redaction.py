"""Takes secrets out of text that leaves the worker: log lines, `debug`, errors, settings.

Two nets: the values of this worker's own secrets, wherever they stand, and the shapes that secrets of others have.
Every pattern is bounded, so a long line costs time in proportion to its length.
"""

import json
import re
from collections.abc import Iterable

HIDDEN = "***"
SHORTEST_SECRET = 6
"""Shorter values would take ordinary words apart."""

_SHAPES = (
    (re.compile(r"(://)[^\s/@\"'\\]{1,512}@"), rf"\g<1>{HIDDEN}@"),
    (re.compile(r"(https?://[^\s?\"'\\]{1,1024}\?)[^\s\"'\\]{1,8192}"), rf"\g<1>{HIDDEN}"),
    (re.compile(r"((?:X-Amz-[A-Za-z-]{1,32}|Signature|AWSAccessKeyId)=)[^&\s\"'\\]{1,4096}"), rf"\g<1>{HIDDEN}"),
    (re.compile(r"(\bBearer )[^\s\"'\\]{1,4096}"), rf"\g<1>{HIDDEN}"),
    (re.compile(r"(--[a-z-]{0,32}(?:key|token|password)[ =])[^\s\"'\\]{1,4096}"), rf"\g<1>{HIDDEN}"),
    (re.compile(r"\b(?:rpa_|hf_|ghp_|AKIA)[A-Za-z0-9]{12,128}"), HIDDEN),
    (
        re.compile(
            r"(['\"](?:password|secret|api_key|authorization)\\?['\"]:\s?\[?\\?['\"])[^\"'\\]{1,4096}", re.IGNORECASE
        ),
        rf"\g<1>{HIDDEN}",
    ),
)


class Redactor:
    """Hides the given secrets and everything that has the shape of one."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {form for secret in secrets for form in (secret, json.dumps(secret)[1:-1])}
        self._known = sorted((secret for secret in known if len(secret) >= SHORTEST_SECRET), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """The text without them."""
        for secret in self._known:
            text = text.replace(secret, HIDDEN)
        for shape, replacement in _SHAPES:
            text = shape.sub(replacement, text)
        return text
