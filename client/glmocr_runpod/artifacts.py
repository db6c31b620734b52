"""Files that a result only points to, fetched while their addresses still work. Flows only."""

import base64
from functools import partial

import msgspec

from glmocr_runpod.contract import Delivery, JsonObject
from glmocr_runpod.delivery import ResultStore, fetch_left
from glmocr_runpod.desk import Desk, patiently
from glmocr_runpod.effects import Flow, call
from glmocr_runpod.errors import ClientError
from glmocr_runpod.identity import sha256


def complete(desk: Desk, key: str, data: bytes) -> Flow[bytes]:
    """The result with the files it only points to inside it: their addresses are short-lived.

    One that cannot be fetched stays a pointer, is in `Document.absent`, and is looked for again by the next call.
    """
    output = msgspec.json.decode(data)
    absent = [artifact for artifact in output.get("artifacts", []) if artifact.get("data") is None]
    fetched = False
    for artifact in absent:
        try:
            content = yield from patiently(desk, key, partial(_fetched, artifact, desk.store))
        except ClientError:
            break
        if content is not None:
            artifact["data"] = base64.b64encode(content).decode()
            fetched = True
    if not fetched:
        return data
    whole = msgspec.json.encode(output)
    yield from call(lambda: desk.ledger.save(key, whole))
    return whole


def _fetched(artifact: JsonObject, store: ResultStore | None) -> Flow[bytes | None]:
    """The file an artifact points to; None where it is not, or not the same. Raises `Unreachable` for now."""
    places = (Delivery.S3, Delivery.VOLUME)
    content = yield from fetch_left(places, artifact.get("url"), artifact.get("key"), artifact["size"], store)
    return content if content is not None and sha256(content) == artifact.get("sha256") else None
