"""`file_url`: fetch from an http(s) address without becoming the caller's window into our network.

The check stands where the socket is made, on the very address that is dialled, so neither a name that resolves
differently the second time nor an odd spelling of an address passes it. runpod 1.12.0's own download checks well but
has no total deadline, reads ~/.netrc, and blocks a thread as long as a server drips; its address check is used.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import unquote

import aiohttp
from yarl import URL

from handler.errors import SourceNotFound, SourceUnavailable, UrlRefused
from handler.settings import Settings
from handler.sources.addresses import may_connect
from handler.sources.fetched import CHUNK_BYTES, Fetched, too_large

REDIRECT_LIMIT = 5
URL_LENGTH_LIMIT = 8192
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_RETRYABLE = frozenset({408, 425, 429})
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "glmocr-worker"}


class _AddressRefused(PermissionError):
    """Raised instead of opening the socket; an OSError so that the connector passes it on."""


async def download(address: str, settings: Settings, path: Path) -> Fetched:
    """Fetch `address` into `path`, within the size limit and one deadline over everything, redirects included."""
    try:
        async with asyncio.timeout(settings.download_timeout_s), _session(settings) as session:
            return await _follow(session, address, settings, path)
    except TimeoutError:
        raise SourceUnavailable(
            f"the address did not deliver within {settings.download_timeout_s:g} s (DOWNLOAD_TIMEOUT_S)"
        ) from None
    except aiohttp.ClientConnectorError as error:
        if isinstance(error.os_error, _AddressRefused):
            raise UrlRefused("the host of file_url has no public address") from None
        raise SourceUnavailable("the host of file_url cannot be reached") from None
    except aiohttp.InvalidURL:
        raise UrlRefused("file_url is not an address that can be dialled") from None
    except (aiohttp.ClientError, ValueError) as error:
        raise SourceUnavailable(f"the address did not deliver: {type(error).__name__}") from None


async def _follow(session: aiohttp.ClientSession, address: str, settings: Settings, path: Path) -> Fetched:
    url = _checked(address, settings)
    for _ in range(REDIRECT_LIMIT + 1):
        async with session.get(url, allow_redirects=False) as response:
            if response.status not in _REDIRECTS:
                await _save(response, path, settings.max_document_bytes)
                return Fetched(path, unquote(url.name) or None)
            location = response.headers.get("Location", "")
        url = _checked(_joined(url, location), settings)
    raise UrlRefused(f"file_url redirects more than {REDIRECT_LIMIT} times")


def _checked(address: str, settings: Settings) -> URL:
    if len(address) > URL_LENGTH_LIMIT or not address.isprintable() or "\\" in address:
        raise UrlRefused("file_url is too long, or has control characters or backslashes")
    try:
        url = URL(address.strip())
        host, _ = url.host, url.port
    except ValueError:
        raise UrlRefused("file_url is not an address") from None
    if url.scheme not in ("http", "https") or not host:
        raise UrlRefused("file_url must be an http or https address")
    if url.raw_user is not None or url.raw_password is not None:
        raise UrlRefused("file_url must not carry a user name or password; use a presigned address")
    allowed = settings.url_allowed_hosts
    if allowed and host.rstrip(".").lower() not in allowed:
        raise UrlRefused("the host of file_url is not one this worker fetches from (URL_ALLOWED_HOSTS)")
    return url.with_fragment(None)


def _joined(url: URL, location: str) -> str:
    if not location:
        raise SourceUnavailable("the address redirects to nowhere")
    try:
        return str(url.join(URL(location)))
    except ValueError:
        raise UrlRefused("the address redirects to something that is not an address") from None


async def _save(response: aiohttp.ClientResponse, path: Path, limit: int) -> None:
    if response.status >= 500 or response.status in _RETRYABLE:
        raise SourceUnavailable(f"the address answered {response.status}")
    if response.status != 200:
        advice = "; the worker brings no credentials, give a presigned address" if response.status in (401, 403) else ""
        raise SourceNotFound(f"the address answered {response.status}{advice}")
    if (response.content_length or 0) > limit:
        raise too_large(limit)
    written = 0
    with path.open("wb") as file:
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            written += len(chunk)
            if written > limit:
                raise too_large(limit)
            file.write(chunk)


@asynccontextmanager
async def _session(settings: Settings) -> AsyncIterator[aiohttp.ClientSession]:
    def guarded_socket(info: aiohttp.connector.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, dialled = info
        if not may_connect(str(dialled[0]), settings.url_private_networks):
            raise _AddressRefused("not a public address")
        return socket.socket(family=family, type=kind, proto=protocol)

    connector = aiohttp.TCPConnector(
        resolver=aiohttp.ThreadedResolver(),
        socket_factory=guarded_socket,
        force_close=True,
        use_dns_cache=False,
        happy_eyeballs_delay=None,
    )
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=30)
    async with aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        timeout=timeout,
        auto_decompress=False,
        trust_env=False,
    ) as session:
        yield session
