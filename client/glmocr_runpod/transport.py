"""HTTP over requests: one request in, one whole answer or the way it failed out. Decides nothing."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError
from urllib3.poolmanager import PoolManager

from glmocr_runpod.effects import Break, NoAnswer, Outcome, Request, Response

CONNECT_S = 10.0
CHUNK_BYTES = 1 << 16


@dataclass(slots=True)
class _Watch:
    """Shuts the socket of a request that is over its deadline, whatever it waits for; a timeout per read does not."""

    seconds: float
    expired: bool = False
    sockets: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._timer = threading.Timer(self.seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()
        _current.watch = self
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        _current.watch = None

    def add(self, sock: socket.socket | None) -> None:
        if sock is not None:
            self.sockets.append(sock)

    def _expire(self) -> None:
        self.expired = True
        for sock in self.sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    _timer: threading.Timer = field(init=False)


class _Current(threading.local):
    watch: _Watch | None = None


_current = _Current()


class _Watching:
    """Tells the request's watch which socket a connection uses, new or kept alive."""

    sock: socket.socket | None

    def connect(self) -> None:
        super().connect()  # type: ignore[misc]  # beside an HTTPConnection
        self._tell()

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._tell()
        super().request(*args, **kwargs)  # type: ignore[misc]

    def _tell(self) -> None:
        if _current.watch is not None:
            _current.watch.add(self.sock)


class _Watched(_Watching, HTTPConnection): ...


class _WatchedTls(_Watching, HTTPSConnection): ...


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Watched


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _WatchedTls


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        self._use(self.poolmanager)

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> PoolManager:
        manager: PoolManager = super().proxy_manager_for(*args, **kwargs)
        self._use(manager)
        return manager

    @staticmethod
    def _use(manager: PoolManager) -> None:
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}


class RequestsTransport:
    """Speaks to one endpoint. Thread-safe as `requests.Session` is: for requests without cookies or redirects."""

    def __init__(self, base_url: str, api_key: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._authorisation = f"Bearer {api_key}"
        self._session = _session()

    def send(self, request: Request) -> Outcome:
        """The whole answer, or how it failed to come."""
        with _Watch(request.deadline_s) as watch, self._session_for(request) as session:
            try:
                outcome = self._exchange(session, request)
            except (requests.RequestException, HTTPError, OSError) as error:
                return _no_answer(error, expired=watch.expired)
            # What was cut off within its head can look like a whole answer.
            return NoAnswer(Break.TIMEOUT, "no whole answer in time") if watch.expired else outcome

    def close(self) -> None:
        """Let connections go."""
        self._session.close()

    def _exchange(self, session: requests.Session, request: Request) -> Outcome:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if request.authorised:
            headers["Authorization"] = self._authorisation
        if request.fresh:
            headers["Connection"] = "close"
        answer = session.request(
            request.method,
            self._address(request.path),
            data=request.body,
            headers=headers,
            timeout=(min(CONNECT_S, request.deadline_s), request.silence_s),
            allow_redirects=False,
            stream=True,
        )
        with answer:
            body = bytearray()
            for chunk in answer.iter_content(CHUNK_BYTES):
                body += chunk
                if len(body) > request.largest_answer:
                    return NoAnswer(Break.BROKEN, f"the answer is over {request.largest_answer} bytes")
        return Response(
            answer.status_code, bytes(body), {name.lower(): value for name, value in answer.headers.items()}
        )

    def _address(self, path: str) -> str:
        return path if path.startswith(("http://", "https://")) else f"{self._base_url}/{path}"

    @contextlib.contextmanager
    def _session_for(self, request: Request) -> Iterator[requests.Session]:
        if not request.fresh:
            yield self._session
            return
        with _session() as session:
            yield session


def _session() -> requests.Session:
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(max_retries=0))
    # A .netrc entry for the host would replace our key.
    session.auth = lambda prepared: prepared
    return session


def _no_answer(error: Exception, *, expired: bool) -> NoAnswer:
    message = f"{type(error).__name__}: {error}"
    # An address or a header that cannot be made into a request; a proxy that did not connect or let us through.
    if isinstance(error, ValueError | requests.exceptions.ProxyError):
        return NoAnswer(Break.NOT_SENT, message)
    if any(isinstance(cause, NewConnectionError | ConnectTimeoutError) for cause in _causes(error)):
        return NoAnswer(Break.NOT_SENT, message)
    if any(type(cause).__name__ == "SSLCertVerificationError" for cause in _causes(error)):
        return NoAnswer(Break.NOT_SENT, message)
    if expired or isinstance(error, requests.Timeout):
        return NoAnswer(Break.TIMEOUT, message)
    return NoAnswer(Break.BROKEN, message)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it wraps and what it was raised from: requests and urllib3 nest theirs in all three ways."""
    seen: set[int] = set()
    stack: list[object] = [error]
    while stack:
        cause = stack.pop()
        if not isinstance(cause, BaseException) or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        stack += [cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args]
