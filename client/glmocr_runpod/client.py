"""The blocking client."""

import random
from types import TracebackType
from typing import Self

from glmocr_runpod.config import Config, load
from glmocr_runpod.contract import Options
from glmocr_runpod.document import Document
from glmocr_runpod.documents import Endpoint, read_document
from glmocr_runpod.events import Event, Observer
from glmocr_runpod.jobs import Desk
from glmocr_runpod.ledger import Ledger, SqliteLedger
from glmocr_runpod.resume import DEFAULT_CONSENTS, Consents
from glmocr_runpod.sources import Given, read_source
from glmocr_runpod.sync import Clock, Runner, SystemClock
from glmocr_runpod.transport import RequestsTransport, Transport


class Client:
    """Reads documents on one endpoint. Thread-safe; closing it ends its waits, and calling again goes on."""

    def __init__(
        self,
        endpoint_id: str | None = None,
        api_key: str | None = None,
        *,
        config: Config | None = None,
        resubmit: Consents = DEFAULT_CONSENTS,
        ledger: Ledger | None = None,
        transport: Transport | None = None,
        clock: Clock | None = None,
    ) -> None:
        config = config or load(runpod_endpoint_id=endpoint_id, runpod_api_key=api_key)
        self.config = config.require_endpoint()
        self._consents = resubmit
        self._clock = clock or SystemClock()
        self._ledger = ledger or SqliteLedger(self.config.state_directory)
        self._transport = transport or RequestsTransport(self.config.base_url, self.config.runpod_api_key)
        self._runner = Runner(self._transport, self._clock)
        self._endpoint = Endpoint(self.config.runpod_api_url, self.config.runpod_endpoint_id)

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
        flow = read_document(self._desk(observer), self._endpoint, document, options or Options())
        return self._runner.run(flow)

    def close(self) -> None:
        """End all waits and let go of connections and files."""
        self._runner.stop()
        self._transport.close()
        self._ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _desk(self, observer: Observer | None) -> Desk:
        return Desk(
            ledger=self._ledger,
            time=self._clock,
            random=random.random,
            observer=observer or _ignore,
            consents=self._consents,
        )


def _ignore(event: Event) -> None:
    del event
