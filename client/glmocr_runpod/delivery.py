"""From what a job returned to the JSON of its result, whichever way it was delivered."""

import base64
import binascii
import zlib
from typing import Any, Protocol

import msgspec

from glmocr_runpod.contract import Delivery, Envelope, JobOutput
from glmocr_runpod.effects import Flow, Method, NoAnswer, Request, call, send
from glmocr_runpod.errors import Undelivered, Unreachable
from glmocr_runpod.identity import sha256
from glmocr_runpod.protocol import TRANSIENT

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
    if envelope.url:
        data = yield from download(envelope.url)
        if data is not None:
            return data
    if envelope.key and store is not None:
        key = envelope.key
        stored = yield from call(lambda: store.fetch(envelope.delivery, key))
        if stored is not None:
            return stored
    raise Undelivered(
        f"the result lies on the {envelope.delivery} under {envelope.key}, where this client cannot fetch it: "
        "configure the storage (see docs/client.md) and call again"
    )


def download(url: str) -> Flow[bytes | None]:
    """What lies at a presigned address, or None. Raises `Unreachable` for now."""
    outcome = yield from send(Request(Method.GET, url, deadline_s=600.0, authorised=False))
    if isinstance(outcome, NoAnswer) or outcome.status in TRANSIENT:
        raise Unreachable("the storage that holds the result does not answer")
    return outcome.body if outcome.status == 200 else None


def _unpacked(envelope: Envelope) -> bytes:
    try:
        packed = base64.b64decode(envelope.data or "", validate=True)
        unpacker = zlib.decompressobj(wbits=31)
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
