"""A result as bytes, and as the value the platform's SDK will send. What is measured here is what travels.

The SDK sends `json.dumps({"output": value}, ensure_ascii=False)` and posts nothing at all when that cannot be encoded
(runpod 1.12.0: a lone surrogate raises outside its error handling, NaN goes out as invalid JSON).
"""

import base64
import hashlib
import json
import math
import zlib
from dataclasses import dataclass

from pydantic_core import PydanticSerializationError, to_json

from handler.schema import JobOutput, JsonValue

GZIP_WBITS = 16 + zlib.MAX_WBITS
"""A gzip file without name and time. The `gzip` module writes another header from Python 3.13 on."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A result as UTF-8 JSON. `value` is what those bytes say."""

    value: dict[str, JsonValue]
    data: bytes

    @property
    def sha256(self) -> str:
        """Of `data`, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def has_nul(self) -> bool:
        """NUL is valid JSON, but stores behind the platform's API are known to refuse it."""
        return rb"\u0000" in self.data

    def zipped(self) -> str:
        """base64 of the gzipped bytes; the same bytes give the same text."""
        return base64.b64encode(zlib.compress(self.data, level=6, wbits=GZIP_WBITS)).decode()


def encode(output: JobOutput) -> Encoded:
    """Valid UTF-8 JSON, whatever the engine said: lone surrogates become U+FFFD, NaN and infinity null."""
    try:
        data = to_json(output, inf_nan_mode="null")
    except (
        PydanticSerializationError
    ):  # a lone surrogate; looking for them in every result would cost more than the rest
        data = to_json(clean(output.model_dump(mode="python")))
    return Encoded(json.loads(data), data)


def wire_size(value: JsonValue) -> int:
    """Bytes the SDK posts for this output."""
    return len(json.dumps({"output": value}, ensure_ascii=False).encode())


def clean(value: object) -> JsonValue:
    """The same value as valid JSON in UTF-8. Raises `TypeError` for what is no part of the contract."""
    if isinstance(value, str):
        return _clean_text(str(value))
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_clean_text(str(key)): clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [clean(inner) for inner in value]
    raise TypeError(f"{type(value).__name__} is no part of the contract")


def _clean_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join(REPLACEMENT if "\ud800" <= c <= "\udfff" else c for c in text)
    return text
