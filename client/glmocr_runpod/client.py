"""The blocking client."""

from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from glmocr_runpod.batch import BatchItem
from glmocr_runpod.config import Config, load
from glmocr_runpod.contract import JsonObject, Options
from glmocr_runpod.core import Core
from glmocr_runpod.document import Document
from glmocr_runpod.events import Observer
from glmocr_runpod.forecast import Forecast
from glmocr_runpod.kit import Kit
from glmocr_runpod.ledger import Ledger
from glmocr_runpod.resume import DEFAULT_CONSENTS, Consent, Entry
from glmocr_runpod.sources import Given
from glmocr_runpod.storage import RemoteStorage
from glmocr_runpod.sync import Clock, Runner, SystemClock, Transport


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
        self.config = config or load(runpod_endpoint_id=endpoint_id, runpod_api_key=api_key)
        clock = clock or SystemClock()
        self._core = Core(self.config, clock, resubmit=resubmit, ledger=ledger, storage=storage, kit=kit)
        self._transport = transport or _over_requests(self.config)
        self._runner = Runner(self._transport, clock)

    @property
    def ledger(self) -> Ledger:
        """What was sent and what came back."""
        return self._core.ledger

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
        return self._runner.run(self._core.parse(source, options, name, observer))

    def submit(
        self,
        source: Given,
        options: Options | None = None,
        *,
        name: str | None = None,
        observer: Observer | None = None,
    ) -> str:
        """Send a document and return its reference without waiting for the result."""
        return self._runner.run(self._core.submit(source, options, name, observer))

    def plan(self, source: Given, options: Options | None = None, *, name: str | None = None) -> Forecast:
        """What sending a document would do, by the ledger and the bytes alone: nothing is sent or written."""
        return self._runner.run(self._core.plan(source, options, name))

    def attach(self, reference: str, *, observer: Observer | None = None) -> Document:
        """Wait for a document submitted before, by its reference (or its beginning) or a job id of the platform."""
        return self._runner.run(self._core.attach(reference, observer))

    def result(self, reference: str) -> Document | None:
        """The result if it is there now, without waiting; None while the document is being read."""
        return self._runner.run(self._core.result(reference))

    def cancel(self, reference: str) -> list[Entry]:
        """Stop a document's jobs; what they are then. Jobs that have ended keep their results."""
        return self._runner.run(self._core.cancel(reference))

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
        paths = [Path(source) for source in sources]
        return self._runner.run(self._core.parse_many(paths, Path(directory), options, concurrency, observe, done))

    def health(self) -> JsonObject:
        """The endpoint's workers and queue. Raises `Denied`, `Rejected` or `Unreachable`."""
        return self._runner.run(self._core.health())

    def stop(self) -> None:
        """End all waits, from another thread or a signal: what waits raises `Closed`."""
        self._runner.stop()

    def close(self) -> None:
        """End all waits, see submissions on their way noted, and let go of connections and files."""
        self.stop()
        self._runner.settle()
        self._transport.close()
        self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _over_requests(config: Config) -> Transport:
    from glmocr_runpod.transport import RequestsTransport  # a third of the import time

    return RequestsTransport(config.base_url, config.runpod_api_key)
