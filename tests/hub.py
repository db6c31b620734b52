"""A stand-in for the model hub: plain HTTP, byte ranges, and a record of what was asked."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs

import yaml

from handler.models.manifest import ModelEntry
from tests.support.servers import http_server

REPO = "acme/tiny"
REVISION = "0123456789abcdef0123456789abcdef01234567"
CHUNK = 64 * 1024


@dataclass
class Hub:
    """The files served, how slowly, and what was sent."""

    files: dict[str, bytes]
    pause_s: float = 0.0
    """Between two chunks of 64 KiB."""
    served: list[tuple[str, int]] = field(default_factory=list)
    """(file, first byte) of every request."""
    sent: int = 0
    url: str = ""
    half_way: threading.Event = field(default_factory=threading.Event)
    """Set when half of some file over one chunk is out."""

    def entry(self, **changes: object) -> ModelEntry:
        """The manifest entry that describes these files."""
        fields = {
            "repo": REPO,
            "revision": REVISION,
            "licence": "MIT",
            "setting": "MODEL_PATH",
            "places": ["explicit", "image", "runpod_cache", "volume", "download"],
            "files": [described(name, data) for name, data in self.files.items()],
        }
        return ModelEntry.model_validate(fields | changes)

    def manifest(self, **changes: object) -> str:
        """A whole manifest with that entry as `tiny`."""
        entry = self.entry(**changes).model_dump(mode="json", exclude_none=True)
        return yaml.safe_dump({"version": 1, "models": {"tiny": entry}})


def described(name: str, data: bytes) -> dict[str, object]:
    """A file's manifest record."""
    return {"path": name, "size": len(data), "sha256": hashlib.sha256(data).hexdigest(), "known": "confirmed"}


def _listed(name: str, data: bytes) -> dict[str, object]:
    """A file in the hub's index: large ones by sha256, small ones by git's hash."""
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    listed: dict[str, object] = {"type": "file", "path": name, "size": len(data), "oid": blob}
    if len(data) > CHUNK:
        listed["lfs"] = {"size": len(data), "oid": hashlib.sha256(data).hexdigest(), "pointerSize": 134}
    return listed


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            prefix = f"/{REPO}/resolve/{REVISION}/"
            name = self.path.removeprefix(prefix)
            if not self.path.startswith(prefix) or name not in hub.files:
                self.send_error(404)
                return
            data = hub.files[name]
            wanted = self.headers.get("Range")
            start = int(wanted.removeprefix("bytes=").split("-")[0]) if wanted else 0
            hub.served.append((name, start))
            self.send_response(206 if wanted else 200)
            self.send_header("Content-Length", str(len(data) - start))
            if wanted:
                self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
            self.end_headers()
            self._send(data, start)

        def do_POST(self) -> None:
            """The index of a repository's files, as the hub's API tells it."""
            asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())["paths"]
            body = json.dumps([_listed(name, hub.files[name]) for name in asked if name in hub.files]).encode()
            self.send_response(200 if self.path == f"/api/models/{REPO}/paths-info/{REVISION}" else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _send(self, data: bytes, start: int) -> None:
            for at in range(start, len(data), CHUNK):
                try:
                    self.wfile.write(data[at : at + CHUNK])
                except OSError:
                    return
                hub.sent += len(data[at : at + CHUNK])
                if len(data) > CHUNK and at >= len(data) // 2:
                    hub.half_way.set()
                time.sleep(hub.pause_s)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def serving(files: Mapping[str, bytes]) -> Iterator[Hub]:
    """A hub on a free loopback port."""
    hub = Hub(dict(files))
    with http_server(_handler(hub)) as hub.url:
        yield hub
