"""The blocking client."""

import random
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from glmocr_runpod.batch import BatchItem, run_batch
from glmocr_runpod.config import Config, load
from glmocr_runpod.contract import JsonObject, Options
from glmocr_runpod.desk import Desk
from glmocr_runpod.document import Document
from glmocr_runpod.documents import Reader, cancel_known, look_at_known, read_document, read_known, submit_document
from glmocr_runpod.effects import Flow, Outcome, send
from glmocr_runpod.events import Event, Observer
from glmocr_runpod.kit import Kit, kit_from
from glmocr_runpod.ledger import Ledger, SqliteLedger
from glmocr_runpod.plan import Plan
from glmocr_runpod.protocol import health_request, read_health
from glmocr_runpod.references import adopt, find_plan
from glmocr_runpod.resume import DEFAULT_CONSENTS, Consent, Entry
from glmocr_runpod.sources import Given, read_source
from glmocr_runpod.storage import RemoteStorage, open_storage
from glmocr_runpod.sync import Clock, Runner, SystemClock, Transport

T = TypeVar("T")


class Client:
    """Reads documents on one endpoint. Thread-safe; closing it ends its waits, and calling again goes on.

    `resubmit` is what may be sent again although that may cost a second run (see `Consent`).
    """

    def __init__(
        self,
        endpoint_id: str | None = None,
        api_key: str | None = None,
        *,
        config: Config | None = None,
        resubmit: Iterable[Consent] = DEFAULT_CONSENTS,
        ledger: Ledger | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
        storage: RemoteStorage | None = None,
        kit: Kit | None = None,
    ) -> None:
        config = config or load(runpod_endpoint_id=endpoint_id, runpod_api_key=api_key)
        self.config = config.require_endpoint()
        self._consents = frozenset(resubmit)
        self._clock = clock or SystemClock()
        self._storage = storage or open_storage(config)
        self._kit = kit or kit_from(config, uploads=self._storage is not None)
        self.ledger = ledger or SqliteLedger(config.state_directory)
        self._transport = transport or _over_requests(config)
        self._runner = Runner(self._transport, self._clock)

    def parse(
        self,
        source: Given,
        options: Options | None = None,
        *,
        name: str | None = None,
        observer: Observer | None = None,
    ) -> Document:
        """Read one document: a path, bytes or a URL. Attaches to a live job or a stored result where there is one.

        Raises a `ClientError`: `Ambiguous`, `Lost`, `JobFailed`, `Unreachable` and so on.
        """
        document = read_source(source, name)
        return self._runner.run(read_document(self._reader(observer), document, options or Options()))

    def submit(
        self,
        source: Given,
        options: Options | None = None,
        *,
        name: str | None = None,
        observer: Observer | None = None,
    ) -> str:
        """Send a document and return its reference without waiting for the result."""
        document = read_source(source, name)
        return self._runner.run(submit_document(self._reader(observer), document, options or Options()))

    def attach(self, reference: str, *, observer: Observer | None = None) -> Document:
        """Wait for a document submitted before, by its reference (or its beginning) or a job id of the platform."""
        reader = self._reader(observer)
        return self._runner.run(read_known(reader, self._plan(reader, reference)))

    def result(self, reference: str) -> Document | None:
        """The result if it is there now, without waiting; None while the document is being read."""
        reader = self._reader(None)
        plan = self._plan(reader, reference)
        ended = self._runner.run(look_at_known(reader, plan))
        return self._runner.run(read_known(reader, plan)) if ended else None

    def cancel(self, reference: str) -> list[Entry]:
        """Stop a document's jobs; what they are then. Jobs that have ended keep their results."""
        reader = self._reader(None)
        return self._runner.run(cancel_known(reader, self._plan(reader, reference)))

    def parse_many(
        self,
        sources: Iterable[str | Path],
        directory: str | Path,
        options: Options | None = None,
        *,
        concurrency: int = 8,
        observe: Callable[[str], Observer] | None = None,
        done: Callable[[BatchItem], Any] | None = None,
    ) -> list[BatchItem]:
        """Read many files into `directory`, `concurrency` at a time. `directory/manifest.jsonl` makes it resumable.

        One file's failure is its own: it is in the list and the manifest. `Denied` and the like end the batch.
        """

        def parse(path: Path, observer: Observer | None) -> Document:
            return self.parse(path, options, observer=observer)

        paths = [Path(source) for source in sources]
        return run_batch(
            parse,
            paths,
            Path(directory),
            options or Options(),
            concurrency=concurrency,
            stop=self.stop,
            observe=observe,
            done=done,
        )

    def health(self) -> JsonObject:
        """The endpoint's workers and queue. Raises `Denied`, `Rejected` or `Unreachable`."""

        def asked() -> Flow[Outcome]:
            return (yield from send(health_request()))

        return read_health(self._runner.run(asked()))

    def stop(self) -> None:
        """End all waits, from another thread or a signal: what waits raises `Closed`."""
        self._runner.stop()

    def close(self) -> None:
        """End all waits and let go of connections and files."""
        self._runner.stop()
        self._transport.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _plan(self, reader: Reader, reference: str) -> Plan:
        found = find_plan(reader.desk, reference)
        return found[1] if found else adopt(reader.desk, reader.api_url, reader.endpoint_id, reference)

    def _reader(self, observer: Observer | None) -> Reader:
        desk = Desk(
            ledger=self.ledger,
            time=self._clock,
            random=random.random,
            observer=observer or _ignore,
            consents=self._consents,
            store=self._storage,
        )
        config = self.config
        return Reader(
            desk=desk,
            kit=self._kit,
            api_url=config.runpod_api_url,
            endpoint_id=config.runpod_endpoint_id,
            jobs_at_once=config.glmocr_jobs_per_document,
            uploader=self._storage,
        )


def _over_requests(config: Config) -> Transport:
    from glmocr_runpod.transport import RequestsTransport  # a third of the import time

    return RequestsTransport(config.base_url, config.runpod_api_key)


def _ignore(event: Event) -> None:
    del event
