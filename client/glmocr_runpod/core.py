"""What both clients are: settings, ledger, storage, and the flows of each call. They differ in who performs them."""

import random
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from glmocr_runpod.batch import BatchItem, read_batch
from glmocr_runpod.config import Config
from glmocr_runpod.contract import JsonObject, Options
from glmocr_runpod.desk import Desk, Time
from glmocr_runpod.document import Document
from glmocr_runpod.documents import (
    Reader,
    cancel_known,
    look_at_known,
    read_document,
    read_known,
    submit_document,
)
from glmocr_runpod.effects import Flow, call, send
from glmocr_runpod.events import Event, Observer
from glmocr_runpod.forecast import Forecast, forecast
from glmocr_runpod.kit import Kit, kit_from
from glmocr_runpod.ledger import Ledger, SqliteLedger
from glmocr_runpod.plan import Plan
from glmocr_runpod.protocol import health_request, read_health
from glmocr_runpod.references import adopt, find_plan
from glmocr_runpod.resume import Consent, Entry
from glmocr_runpod.sources import Given, read_source
from glmocr_runpod.storage import RemoteStorage, open_storage


class Core:
    """The calls as flows. Raises `ConfigError` when no endpoint is named."""

    def __init__(
        self,
        config: Config,
        time: Time,
        *,
        resubmit: Iterable[Consent],
        ledger: Ledger | None = None,
        storage: RemoteStorage | None = None,
        kit: Kit | None = None,
    ) -> None:
        self.config = config.require_endpoint()
        self.ledger = ledger or SqliteLedger(config.state_directory)
        self._time = time
        self._consents = frozenset(resubmit)
        self._storage = storage or open_storage(config)
        self._kit = kit or kit_from(config, uploads=self._storage is not None)

    def parse(
        self, given: Given, options: Options | None, name: str | None, observer: Observer | None
    ) -> Flow[Document]:
        """Read one document."""
        source = yield from call(lambda: read_source(given, name))
        return (yield from read_document(self._reader(observer), source, options or Options()))

    def submit(self, given: Given, options: Options | None, name: str | None, observer: Observer | None) -> Flow[str]:
        """Send one document; its reference."""
        source = yield from call(lambda: read_source(given, name))
        return (yield from submit_document(self._reader(observer), source, options or Options()))

    def plan(self, given: Given, options: Options | None, name: str | None) -> Flow[Forecast]:
        """What sending one document would do; nothing is sent or written."""
        source = yield from call(lambda: read_source(given, name))
        return (yield from forecast(self._reader(None), source, options or Options()))

    def attach(self, reference: str, observer: Observer | None) -> Flow[Document]:
        """Wait for what was sent."""
        reader = self._reader(observer)
        return (yield from read_known(reader, self._plan(reader, reference)))

    def result(self, reference: str) -> Flow[Document | None]:
        """What was sent, if it has ended."""
        reader = self._reader(None)
        plan = self._plan(reader, reference)
        ended = yield from look_at_known(reader, plan)
        return (yield from read_known(reader, plan)) if ended else None

    def cancel(self, reference: str) -> Flow[list[Entry]]:
        """Stop what was sent."""
        reader = self._reader(None)
        return (yield from cancel_known(reader, self._plan(reader, reference)))

    def parse_many(
        self,
        paths: Sequence[Path],
        directory: Path,
        options: Options | None,
        concurrency: int,
        observe: Callable[[str], Observer] | None,
        done: Callable[[BatchItem], Any] | None,
    ) -> Flow[list[BatchItem]]:
        """Read many files into a directory."""

        def parse(path: Path) -> Flow[Document]:
            return self.parse(path, options, None, observe(str(path)) if observe else None)

        return (yield from read_batch(parse, paths, directory, options or Options(), concurrency, done))

    def health(self) -> Flow[JsonObject]:
        """The endpoint's workers and queue."""
        return read_health((yield from send(health_request())))

    def _plan(self, reader: Reader, reference: str) -> Plan:
        found = find_plan(reader.desk, reference)
        return found[1] if found else adopt(reader.desk, reader.api_url, reader.endpoint_id, reference)

    def _reader(self, observer: Observer | None) -> Reader:
        desk = Desk(
            ledger=self.ledger,
            time=self._time,
            random=random.random,
            observer=observer or _ignore,
            consents=self._consents,
            store=self._storage,
        )
        return Reader(
            desk=desk,
            kit=self._kit,
            api_url=self.config.api_url,
            endpoint_id=self.config.runpod_endpoint_id,
            jobs_at_once=self.config.glmocr_jobs_per_document,
            uploader=self._storage,
        )


def _ignore(event: Event) -> None:
    del event
