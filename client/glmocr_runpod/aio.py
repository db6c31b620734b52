"""The asynchronous client: the same flows, performed with asyncio and aiohttp. Needs the extra `async`."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp

from glmocr_runpod.batch import BatchItem
from glmocr_runpod.config import Config, load
from glmocr_runpod.contract import JsonObject, Options
from glmocr_runpod.core import Core
from glmocr_runpod.document import Document
from glmocr_runpod.effects import Break, Call, Effect, Flow, NoAnswer, Outcome, Pause, Request, Response, Send, Together
from glmocr_runpod.errors import ClientError
from glmocr_runpod.events import Observer
from glmocr_runpod.forecast import Forecast
from glmocr_runpod.kit import Kit
from glmocr_runpod.ledger import Ledger
from glmocr_runpod.resume import DEFAULT_CONSENTS, Consent, Entry
from glmocr_runpod.sources import Given
from glmocr_runpod.storage import RemoteStorage

T = TypeVar("T")
CONNECT_S = 10.0
CONNECTIONS = 64
NEVER_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
    aiohttp.NonHttpUrlClientError,
)


class AsyncClient:
    """`Client` for asyncio: the same calls, awaited. Cancelling one ends its wait; calling again goes on."""

    def __init__(
        self,
        endpoint_id: str | None = None,
        api_key: str | None = None,
        *,
        config: Config | None = None,
        resubmit: Iterable[Consent] = DEFAULT_CONSENTS,
        ledger: Ledger | None = None,
        storage: RemoteStorage | None = None,
        kit: Kit | None = None,
    ) -> None:
        self.config = config or load(runpod_endpoint_id=endpoint_id, runpod_api_key=api_key)
        self._core = Core(self.config, _Time(), resubmit=resubmit, ledger=ledger, storage=storage, kit=kit)
        self._runner = AsyncRunner(self.config)

    @property
    def ledger(self) -> Ledger:
        """What was sent and what came back."""
        return self._core.ledger

    async def parse(
        self,
        source: Given,
        options: Options | None = None,
        *,
        name: str | None = None,
        observer: Observer | None = None,
    ) -> Document:
        """Read one document; see `Client.parse`."""
        return await self._runner.run(self._core.parse(source, options, name, observer))

    async def submit(
        self,
        source: Given,
        options: Options | None = None,
        *,
        name: str | None = None,
        observer: Observer | None = None,
    ) -> str:
        """Send a document and return its reference; see `Client.submit`."""
        return await self._runner.run(self._core.submit(source, options, name, observer))

    async def plan(self, source: Given, options: Options | None = None, *, name: str | None = None) -> Forecast:
        """What sending a document would do; see `Client.plan`."""
        return await self._runner.run(self._core.plan(source, options, name))

    async def attach(self, reference: str, *, observer: Observer | None = None) -> Document:
        """Wait for a document submitted before; see `Client.attach`."""
        return await self._runner.run(self._core.attach(reference, observer))

    async def result(self, reference: str) -> Document | None:
        """The result if it is there now; see `Client.result`."""
        return await self._runner.run(self._core.result(reference))

    async def cancel(self, reference: str) -> list[Entry]:
        """Stop a document's jobs; see `Client.cancel`."""
        return await self._runner.run(self._core.cancel(reference))

    async def parse_many(
        self,
        sources: Iterable[str | Path],
        directory: str | Path,
        options: Options | None = None,
        *,
        concurrency: int = 8,
        observe: Callable[[str], Observer] | None = None,
        done: Callable[[BatchItem], Any] | None = None,
    ) -> list[BatchItem]:
        """Read many files into `directory`; see `Client.parse_many`."""
        paths = [Path(source) for source in sources]
        flow = self._core.parse_many(paths, Path(directory), options, concurrency, observe, done)
        return await self._runner.run(flow)

    async def health(self) -> JsonObject:
        """The endpoint's workers and queue; see `Client.health`."""
        return await self._runner.run(self._core.health())

    async def close(self) -> None:
        """Let go of connections and files."""
        await self._runner.close()
        self.ledger.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


class _Time:
    def wall(self) -> float:
        return time.time()

    def steady(self) -> float:
        return time.monotonic()


class Overheard(BaseException):
    """The caller gave up while a submission was on its way. Its outcome came all the same."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome


def write_down(flow: Flow[Any], outcome: Outcome) -> None:
    """Let a flow note what came of its request, and go no further: unnoted, the job would be ambiguous."""
    with contextlib.suppress(StopIteration, ClientError):
        flow.send(outcome)


class AsyncRunner:
    """Drives flows to their end in an event loop."""

    def __init__(self, config: Config) -> None:
        self._base_url = config.base_url
        self._authorisation = f"Bearer {config.runpod_api_key}"
        self._session: aiohttp.ClientSession | None = None

    async def run(self, flow: Flow[T]) -> T:
        """What the flow returns; raises what it raises."""
        try:
            effect = next(flow)
            while True:
                try:
                    answer = await self._perform(effect)
                except (ClientError, OSError) as error:
                    effect = flow.throw(error)
                except Overheard as interrupted:
                    write_down(flow, interrupted.outcome)
                    raise asyncio.CancelledError from None
                else:
                    effect = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    async def close(self) -> None:
        """Let connections go."""
        if self._session is not None:
            await self._session.close()

    async def _perform(self, effect: Effect) -> Any:
        match effect:
            case Send(request):
                return await self._send(request)
            case Pause(seconds):
                return await asyncio.sleep(seconds)
            case Call(work):
                return await asyncio.to_thread(work)
            case Together(flows, at_once):
                return await self._together(flows, at_once)

    async def _together(self, flows: Sequence[Flow[Any]], at_once: int) -> list[Any]:
        gate = asyncio.Semaphore(max(1, at_once))

        async def settle(flow: Flow[Any]) -> Any:
            async with gate:
                try:
                    return await self.run(flow)
                except ClientError as error:
                    return error

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(settle(flow)) for flow in flows]
        except BaseExceptionGroup as errors:
            # One by itself, as the blocking client raises it.
            raise errors.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _send(self, request: Request) -> Outcome:
        if not request.fresh:
            self._session = self._session or aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=CONNECTIONS))
            return await self._exchange(self._session, request)
        submission = asyncio.create_task(self._submit(request))
        try:
            return await asyncio.shield(submission)
        except asyncio.CancelledError:
            while not submission.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([submission])
            raise Overheard(submission.result()) from None

    async def _submit(self, request: Request) -> Outcome:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            return await self._exchange(session, request)

    async def _exchange(self, session: aiohttp.ClientSession, request: Request) -> Outcome:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if request.authorised:
            headers["Authorization"] = self._authorisation
        whole = request.path.startswith(("http://", "https://"))
        address = request.path if whole else f"{self._base_url}/{request.path}"
        timeout = aiohttp.ClientTimeout(
            total=request.deadline_s, sock_connect=min(CONNECT_S, request.deadline_s), sock_read=request.silence_s
        )
        try:
            async with session.request(
                request.method, address, data=request.body, headers=headers, timeout=timeout, allow_redirects=False
            ) as answer:
                body = await answer.read()
                return Response(answer.status, body, {name.lower(): value for name, value in answer.headers.items()})
        except NEVER_SENT as error:
            return NoAnswer(Break.NOT_SENT, _said(error))
        except TimeoutError as error:
            return NoAnswer(Break.TIMEOUT, _said(error))
        except (aiohttp.ClientError, OSError) as error:
            return NoAnswer(Break.BROKEN, _said(error))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
