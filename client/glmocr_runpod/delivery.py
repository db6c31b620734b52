"""From what a job returned to the JSON of its result, whichever way it was delivered."""

import base64
import binascii
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from glmocr_runpod.contract import Delivery, Envelope, JobOutput
from glmocr_runpod.effects import Flow, Method, NoAnswer, Request, call, send
from glmocr_runpod.errors import Undelivered, Unreachable
from glmocr_runpod.identity import sha256
from glmocr_runpod.packing import GZIP_WBITS
from glmocr_runpod.protocol import TRANSIENT, deadline_s

RESULT_LIMIT = 2 * 1024 * 1024 * 1024
"""Bytes of one result, unpacked."""


class ResultStore(Protocol):
    """The volume or bucket the worker leaves results in, as far as the client may read it."""

    def fetch(self, delivery: Delivery, key: str) -> bytes | None:
        """The bytes under `key`, or None where there are none. Raises `Unreachable` when the store does not answer."""

    def find(self, content_key: str) -> bytes | None:
        """The result left under a content key, or None."""


def receive(output: Any, store: ResultStore | None) -> Flow[bytes]:
    """The JSON of the `JobOutput` that `output` is or points to. Raises `Undelivered`, or `Unreachable` for now."""
    if isinstance(output, dict) and "delivery" in output:
        envelope = _convert(output, Envelope)
        data = yield from _open(envelope, store)
        return _checked(data, envelope)
    _convert(output, JobOutput)
    return msgspec.json.encode(output)


def read_result(data: bytes) -> JobOutput:
    """The result, typed. Raises `Undelivered` when it is not one."""
    try:
        return msgspec.json.decode(data, type=JobOutput)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Undelivered(f"the result is not of contract version 1: {error}") from error


def _open(envelope: Envelope, store: ResultStore | None) -> Flow[bytes]:
    if envelope.delivery is Delivery.GZIP:
        return _unpacked(envelope)
    found = yield from fetch_left((envelope.delivery,), envelope.url, envelope.key, envelope.size, store)
    if found is not None:
        return found
    raise Undelivered(
        f"the result lies on the {envelope.delivery} under {envelope.key}, where this client cannot fetch it: "
        "configure the storage (see docs/client.md) and call again"
    )


def fetch_left(
    places: Sequence[Delivery], url: str | None, key: str | None, size: int, store: ResultStore | None
) -> Flow[bytes | None]:
    """What the worker left at `url`, else in one of `places` under `key`; None where it is not.

    Raises `Unreachable` for now.
    """
    away: Unreachable | None = None
    if url:
        try:
            content = yield from _download(url, size)
        except Unreachable as error:
            away = error
        else:
            if content is not None:
                return content
    if key and store is not None:
        for place in places:
            content = yield from call(partial(store.fetch, place, key))
            if content is not None:
                return content
    if away is not None:
        raise away
    return None


def _download(url: str, size: int) -> Flow[bytes | None]:
    request = Request(Method.GET, url, deadline_s=deadline_s(size), authorised=False, largest_answer=RESULT_LIMIT)
    outcome = yield from send(request)
    if isinstance(outcome, NoAnswer) or outcome.status in TRANSIENT:
        raise Unreachable("the storage that holds the result does not answer")
    return outcome.body if outcome.status == 200 else None


def _unpacked(envelope: Envelope) -> bytes:
    try:
        packed = base64.b64decode(envelope.data or "", validate=True)
        unpacker = zlib.decompressobj(wbits=GZIP_WBITS)
        return unpacker.decompress(packed, min(envelope.size, RESULT_LIMIT) + 1)
    except (binascii.Error, zlib.error) as error:
        raise Undelivered(f"the packed result cannot be opened: {error}") from error


def _checked(data: bytes, envelope: Envelope) -> bytes:
    if len(data) != envelope.size or sha256(data) != envelope.sha256:
        raise Undelivered(f"the result does not match its digest: {len(data)} bytes came, {envelope.size} were sent")
    read_result(data)
    return data


def _convert(output: Any, kind: type[msgspec.Struct]) -> Any:
    try:
        return msgspec.convert(output, kind)
    except msgspec.ValidationError as error:
        raise Undelivered(f"the result is not of contract version 1: {error}") from error
