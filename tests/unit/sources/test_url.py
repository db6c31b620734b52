"""Against a real server on loopback, which the settings open by name; and against addresses that stay closed."""

import asyncio
import base64
import gzip
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from handler.errors import DocumentTooLarge, SourceNotFound, SourceUnavailable, UrlRefused, WorkerError
from handler.settings import Settings
from handler.sources import url as module
from handler.sources.url import download
from tests.unit.sources.conftest import PDF

SettingsWith = Callable[..., Settings]


@pytest.fixture
async def server() -> AsyncIterator[str]:
    async def ok(request: web.Request) -> web.Response:
        return web.Response(body=PDF, headers={"Set-Cookie": "a=b"})

    async def redirect(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": request.query["to"]})

    async def hop(request: web.Request) -> web.Response:
        left = int(request.match_info["left"])
        return web.Response(status=307, headers={"Location": f"/hop/{left - 1}" if left else "/scan.pdf"})

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"%PDF-" + b"x" * 65536)

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.02)

    async def lying(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": str(10**12)})
        await response.prepare(request)
        return response

    async def encoded(request: web.Request) -> web.Response:
        return web.Response(body=gzip.compress(PDF), headers={"Content-Encoding": "gzip"})

    async def status(request: web.Request) -> web.Response:
        return web.Response(status=int(request.match_info["code"]))

    app = web.Application()
    app.add_routes(
        [
            web.get("/scan.pdf", ok),
            web.get("/redirect", redirect),
            web.get("/hop/{left}", hop),
            web.get("/endless", endless),
            web.get("/drip", drip),
            web.get("/lying", lying),
            web.get("/encoded", encoded),
            web.get("/status/{code}", status),
        ]
    )
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.fixture
def open_settings(settings_with: SettingsWith) -> SettingsWith:
    def build(**changes: Any) -> Settings:
        return settings_with(**{"url_private_networks": "127.0.0.0/8", "download_timeout_s": 2.0} | changes)

    return build


async def test_a_document_is_fetched_with_the_name_of_its_address(
    server: str, open_settings: SettingsWith, tmp_path: Path
) -> None:
    fetched = await download(f"{server}/scan.pdf?token=secret#page=2", open_settings(), tmp_path / "f")
    assert (fetched.path.read_bytes(), fetched.name) == (PDF, "scan.pdf")


async def test_redirects_are_followed_up_to_the_limit(server: str, open_settings: SettingsWith, tmp_path: Path) -> None:
    fetched = await download(f"{server}/hop/{module.REDIRECT_LIMIT - 1}", open_settings(), tmp_path / "f")
    assert fetched.name == "scan.pdf"
    with pytest.raises(UrlRefused, match="more than"):
        await download(f"{server}/hop/{module.REDIRECT_LIMIT}", open_settings(), tmp_path / "f")


async def test_bytes_are_kept_as_sent_whatever_the_content_encoding(
    server: str, open_settings: SettingsWith, tmp_path: Path
) -> None:
    fetched = await download(f"{server}/encoded", open_settings(), tmp_path / "f")
    assert gzip.decompress(fetched.path.read_bytes()) == PDF


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/status/404", SourceNotFound),
        ("/status/403", SourceNotFound),
        ("/status/206", SourceNotFound),
        ("/status/500", SourceUnavailable),
        ("/status/429", SourceUnavailable),
        ("/redirect?to=", SourceUnavailable),
        ("/redirect?to=file:///etc/passwd", UrlRefused),
        ("/redirect?to=http://169.254.169.254/latest/meta-data/", UrlRefused),
        ("/redirect?to=http://user:password@127.0.0.1/", UrlRefused),
        ("/redirect?to=//10.0.0.1/", UrlRefused),
        ("/redirect?to=http://[::1", UrlRefused),
        ("/endless", DocumentTooLarge),
        ("/lying", DocumentTooLarge),
        ("/drip", SourceUnavailable),
    ],
)
async def test_answers_that_bring_no_document(
    server: str, open_settings: SettingsWith, tmp_path: Path, path: str, error: type[WorkerError]
) -> None:
    with pytest.raises(WorkerError) as caught:
        await download(server + path, open_settings(), tmp_path / "f")
    assert type(caught.value) is error


REFUSED = [
    "file:///etc/passwd",
    "ftp://example.com/a.pdf",
    "gopher://127.0.0.1:6379/_INFO",
    "data:application/pdf;base64,AAAA",
    "example.com/a.pdf",
    "//example.com/a.pdf",
    "http://",
    "http:///a.pdf",
    "http://[::1",
    "http://user:secret@example.com/",
    "http://user@example.com/",
    "http://example.com\\@127.0.0.1/",
    "http://exa\nmple.com/",
    "http://example.com:99999/",
    "http://" + "a" * 9000,
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://0/",
    "http://localhost/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[fd00:ec2::254]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/",
    "http://100.100.100.200/",
    "http://100.64.0.1/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://①②⑦.⓪.⓪.①/",
]


@pytest.mark.parametrize("address", REFUSED)
async def test_addresses_that_are_never_dialled(
    settings_with: SettingsWith, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_socket(*args: object, **kwargs: object) -> socket.socket:
        raise AssertionError("a socket was made")

    monkeypatch.setattr(socket, "socket", no_socket)
    with pytest.raises(UrlRefused):
        await download(address, settings_with(), tmp_path / "f")


async def test_a_name_that_turns_private_after_a_first_look_is_refused(
    settings_with: SettingsWith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address that is checked is the one that is dialled: there is no second look-up to poison."""
    looked_up: list[str] = []

    async def rebinding(self: object, host: str, port: int, *args: object, **kwargs: object) -> list[Any]:
        looked_up.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.5", port))]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", rebinding)
    with pytest.raises(UrlRefused, match="no public address"):
        await download("http://rebind.example/a.pdf", settings_with(), tmp_path / "f")
    assert looked_up == ["rebind.example"]


async def test_an_unknown_host_is_unavailable(
    settings_with: SettingsWith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(self: object, *args: object, **kwargs: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "not known")

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", unknown)
    with pytest.raises(SourceUnavailable):
        await download("http://nowhere.example/a.pdf", settings_with(), tmp_path / "f")


async def test_only_listed_hosts_when_there_is_a_list(server: str, open_settings: SettingsWith, tmp_path: Path) -> None:
    with pytest.raises(UrlRefused, match="URL_ALLOWED_HOSTS"):
        await download(f"{server}/scan.pdf", open_settings(url_allowed_hosts="docs.example.com"), tmp_path / "f")
    fetched = await download(
        f"{server}/scan.pdf", open_settings(url_allowed_hosts="docs.example.com, 127.0.0.1"), tmp_path / "f"
    )
    assert fetched.name == "scan.pdf"


async def test_the_query_never_shows_in_an_error(server: str, open_settings: SettingsWith, tmp_path: Path) -> None:
    secret = base64.urlsafe_b64encode(b"signature-of-a-presigned-address").decode()
    for path in ("/status/404", "/status/500", "/drip"):
        with pytest.raises(WorkerError) as caught:
            await download(f"{server}{path}?X-Amz-Signature={secret}", open_settings(), tmp_path / "f")
        assert secret not in repr(caught.value.info())
