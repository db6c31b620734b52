"""A stand-in for RunPod's REST API: templates, endpoints and their workers, strict about what it is sent."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import urlsplit

from tests.support.servers import http_server

KEY = "account-key"
TEMPLATE_FIELDS = {
    "name",
    "imageName",
    "containerDiskInGb",
    "containerRegistryAuthId",
    "env",
    "isServerless",
    "volumeInGb",
    "readme",
}
ENDPOINT_FIELDS = {
    "name",
    "templateId",
    "computeType",
    "gpuCount",
    "gpuTypeIds",
    "allowedCudaVersions",
    "workersMin",
    "workersMax",
    "idleTimeout",
    "executionTimeoutMs",
    "scalerType",
    "scalerValue",
    "flashboot",
    "networkVolumeId",
    "dataCenterIds",
}


@dataclass
class Account:
    """What the account holds. A worker is replaced by one of the new template after `stale_polls` looks."""

    templates: dict[str, dict[str, Any]] = field(default_factory=dict)
    endpoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    workers: list[dict[str, Any]] = field(default_factory=list)
    networkvolumes: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "vol1", "name": "glmocr"}])
    containerregistryauth: list[dict[str, Any]] = field(default_factory=lambda: [{"id": "auth1", "name": "ghcr"}])
    stale_polls: int = 2
    writes: list[str] = field(default_factory=list)
    url: str = ""

    def get(self, path: str, query: str) -> Any:
        """Any GET."""
        collection, _, identity = path.strip("/").partition("/")
        if identity:
            return self.endpoints[identity] | {"workers": self._workers_now(identity)}
        if collection == "endpoints":
            template = {"template": True} if "includeTemplate=true" in query else {}
            return [
                endpoint | dict.fromkeys(template, self.templates[endpoint["templateId"]])
                for endpoint in self.endpoints.values()
            ]
        found = getattr(self, collection)
        return list(found.values()) if isinstance(found, dict) else found

    def write(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Any POST or PATCH. Raises `ValueError` for a field the API does not know."""
        collection, _, identity = path.strip("/").partition("/")
        known = TEMPLATE_FIELDS if collection == "templates" else ENDPOINT_FIELDS
        if unknown := body.keys() - known:
            raise ValueError(f"unknown fields {sorted(unknown)}")
        store: dict[str, dict[str, Any]] = getattr(self, collection)
        if collection == "templates" and any(one["name"] == body["name"] for one in store.values()):
            raise ValueError("template names are unique")
        identity = identity or f"{collection[:4]}{len(store) + 1}"
        store[identity] = store.get(identity, {"id": identity}) | body
        if collection == "endpoints" and body.get("flashboot") and method == "POST":
            store[identity]["name"] += " -fb"
        self.writes.append(f"{method} {collection}")
        return store[identity]

    def _workers_now(self, endpoint: str) -> list[dict[str, Any]]:
        shown = [dict(worker) for worker in self.workers]
        self.stale_polls -= 1
        if self.stale_polls <= 0:
            for worker in self.workers:
                worker["templateId"] = self.endpoints[endpoint]["templateId"]
        return shown


def _handler(account: Account) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            self._answer(lambda: account.get(parts.path, parts.query))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(lambda: account.write(self.command, self.path, body))

        def do_PATCH(self) -> None:
            self.do_POST()

        def _answer(self, make: Any) -> None:
            try:
                allowed = self.headers["Authorization"] == f"Bearer {KEY}"
                status, answer = (200, make()) if allowed else (401, {"error": "unauthorized"})
            except ValueError as error:
                status, answer = 400, {"error": str(error)}
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@contextmanager
def serving() -> Iterator[Account]:
    """An empty account behind a free loopback port."""
    account = Account()
    with http_server(_handler(account)) as account.url:
        yield account
