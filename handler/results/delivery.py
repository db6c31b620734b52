"""How a result leaves: the first way that fits what the platform accepts and what the caller asked for.

inline -> gzip -> bucket -> volume -> `result_too_large`. With a volume, else with a bucket, the result is also left
there before it is posted, for callers who come after the platform has forgotten it.
"""

import asyncio
import base64
import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from handler.errors import InputError, ResultTooLarge, StorageUnavailable
from handler.page_outcome import Figure
from handler.results.encoding import Encoded, encode, wire_size
from handler.results.storage import Storage, Stored
from handler.schema import (
    DEGRADED_ITEMS_LIMIT,
    Artifact,
    Degraded,
    DegradedItem,
    Delivery,
    DocumentStatus,
    Envelope,
    JobOutput,
    JsonValue,
    Reason,
    Transport,
)

log = logging.getLogger(__name__)

INLINE_LIMIT = 9_000_000
"""Bytes of one posted result. The platform's documented limit for `/run` is 10 MB; what lies over it is refused after
the handler has returned, and the caller sees COMPLETED without output."""
INLINE_FIGURES_LIMIT = 4_000_000
"""Bytes of figures, base64, that may travel inside a result."""
JSON = "application/json"
LEAVE_S = 20.0
"""How long a job waits for a copy of its result to be left, seconds: every one of them is paid for."""


@dataclass(frozen=True)
class Deliverer:
    """The ways out of this worker."""

    volume: Storage | None
    bucket: Storage | None
    inline_limit: int = INLINE_LIMIT

    def refuse_impossible(self, transport: Transport) -> None:
        """Raises `InputError` before any work is done when the transport asked for is not set up here."""
        if transport is Transport.VOLUME and self.volume is None:
            raise InputError("transport=volume: this worker has no network volume mounted")
        if transport is Transport.S3 and self.bucket is None:
            raise InputError("transport=s3: this worker has no bucket; set BUCKET_ENDPOINT_URL and BUCKET_NAME")

    async def deliver(self, output: JobOutput, figures: Sequence[Figure], transport: Transport) -> dict[str, JsonValue]:
        """The value to return to the platform. Raises `ResultTooLarge` or `StorageUnavailable`."""
        output = await self._with_artifacts(output, figures, transport)
        encoded = encode(output)
        left = await self._leave(output, encoded)
        if transport in (Transport.AUTO, Transport.INLINE):
            fitting = self._inline(output, encoded)
            if fitting is not None:
                return fitting
            if transport is Transport.INLINE:
                raise self._too_large(encoded)
        refused: StorageUnavailable | None = None
        for storage in self._storages(transport):
            try:
                stored = left.get(storage.delivery) or await storage.put(
                    _result_name(output, encoded), encoded.data, JSON
                )
            except StorageUnavailable as error:
                refused = error
                continue
            return _envelope(storage.delivery, output, encoded, key=stored.key, url=stored.url)
        raise refused or self._too_large(encoded)

    def _storages(self, transport: Transport) -> list[Storage]:
        """For `auto` the bucket first: anyone can fetch from its signed address."""
        wanted = {Transport.VOLUME: (self.volume,), Transport.S3: (self.bucket,)}
        return [s for s in wanted.get(transport, (self.bucket, self.volume)) if s is not None]

    def _inline(self, output: JobOutput, encoded: Encoded) -> dict[str, JsonValue] | None:
        if not encoded.has_nul and wire_size(encoded.value) <= self.inline_limit:
            return encoded.value
        envelope = _envelope(Delivery.GZIP, output, encoded, data=encoded.zipped())
        return envelope if wire_size(envelope) <= self.inline_limit else None

    async def _leave(self, output: JobOutput, encoded: Encoded) -> dict[Delivery, Stored]:
        """Put the result where callers look for it who come too late for the platform. What fails is only logged."""
        storage = self.volume or self.bucket
        if storage is None or output.document is None or output.status is DocumentStatus.FAILED:
            return {}
        try:
            async with asyncio.timeout(LEAVE_S):
                return {storage.delivery: await storage.put(_result_name(output, encoded), encoded.data, JSON)}
        except (StorageUnavailable, TimeoutError) as error:
            log.warning("result not left in the storage: %s", error)
            return {}

    async def _with_artifacts(self, output: JobOutput, figures: Sequence[Figure], transport: Transport) -> JobOutput:
        """Figures travel inline while they are few, else they go where results go."""
        if not figures or output.document is None:
            return output
        inline = sum(len(figure.jpeg) for figure in figures) * 4 // 3 <= INLINE_FIGURES_LIMIT
        if inline and transport in (Transport.AUTO, Transport.INLINE):
            artifacts = [_artifact(f, data=base64.b64encode(f.jpeg).decode()) for f in figures]
            return output.model_copy(update={"artifacts": tuple(artifacts)})
        storages = self._storages(transport) if transport is not Transport.INLINE else []
        if not storages:
            return _with_figures_that_fit(output, figures)
        artifacts = []
        for figure in figures:
            stored = await storages[0].put(f"{output.document.content_key}/{figure.name}", figure.jpeg, "image/jpeg")
            artifacts.append(_artifact(figure, key=stored.key, url=stored.url))
        return output.model_copy(update={"artifacts": tuple(artifacts)})

    def _too_large(self, encoded: Encoded) -> ResultTooLarge:
        return ResultTooLarge(size=len(encoded.data), limit=self.inline_limit)


def _result_name(output: JobOutput, encoded: Encoded) -> str:
    """Under the content key; results without a document are named by their own hash."""
    return f"{output.document.content_key if output.document else encoded.sha256}/result.json"


def _with_figures_that_fit(output: JobOutput, figures: Sequence[Figure]) -> JobOutput:
    """The first figures inside the result. The others are named, without their data, and in `degraded`."""
    artifacts: list[Artifact] = []
    left_out: list[DegradedItem] = []
    room = INLINE_FIGURES_LIMIT
    for figure in figures:
        data = base64.b64encode(figure.jpeg).decode()
        if len(data) <= room:
            room -= len(data)
            artifacts.append(_artifact(figure, data=data))
        else:
            artifacts.append(_artifact(figure))
            message = f"{figure.name} does not fit into the result; set up a bucket or a volume"
            left_out.append(
                DegradedItem(
                    page=figure.page, region=figure.region, reason=Reason.FIGURE_NOT_DELIVERED, message=message
                )
            )
    degraded = Degraded(
        count=output.degraded.count + len(left_out),
        items=(*output.degraded.items, *left_out)[:DEGRADED_ITEMS_LIMIT],
    )
    return output.model_copy(update={"artifacts": tuple(artifacts), "degraded": degraded})


def _artifact(figure: Figure, *, data: str | None = None, key: str | None = None, url: str | None = None) -> Artifact:
    return Artifact(
        name=figure.name,
        media_type="image/jpeg",
        size=len(figure.jpeg),
        sha256=hashlib.sha256(figure.jpeg).hexdigest(),
        page=figure.page,
        region=figure.region,
        data=data,
        key=key,
        url=url,
    )


def _envelope(
    delivery: Delivery,
    output: JobOutput,
    encoded: Encoded,
    *,
    data: str | None = None,
    key: str | None = None,
    url: str | None = None,
) -> dict[str, JsonValue]:
    debug = encoded.value.get("debug")
    envelope = Envelope(
        delivery=delivery,
        data=data,
        key=key,
        url=url,
        size=len(encoded.data),
        sha256=encoded.sha256,
        status=output.status,
        counts=output.counts,
        content_key=output.document.content_key if output.document else None,
        debug=debug if isinstance(debug, dict) and "\\x00" not in repr(debug) else {},
    )
    value: dict[str, JsonValue] = envelope.model_dump(mode="json")
    return value
