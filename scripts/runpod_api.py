"""RunPod's REST API, as far as a deployment needs it."""

from collections.abc import Mapping
from typing import Any

import requests

TIMEOUT_S = 60
DEFAULT_URL = "https://rest.runpod.io/v1"

Record = Mapping[str, Any]


class ApiError(Exception):
    """RunPod refused, or could not be reached."""


class RunpodApi:
    """A session with the account's key. Every method raises `ApiError`."""

    def __init__(self, key: str, url: str = DEFAULT_URL) -> None:
        self._url = url.rstrip("/")
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {key}"

    def endpoints(self) -> list[Record]:
        """All of the account's, with their templates."""
        found: list[Record] = self._call("GET", "/endpoints?includeTemplate=true")
        return found

    def workers(self, endpoint: str) -> list[Record]:
        """The endpoint's workers that exist now."""
        found: Record = self._call("GET", f"/endpoints/{endpoint}?includeWorkers=true")
        return list(found.get("workers") or ())

    def templates(self) -> list[Record]:
        """All of the account's own."""
        found: list[Record] = self._call("GET", "/templates")
        return found

    def create_template(self, fields: Record) -> Record:
        """A new template, with its id."""
        created: Record = self._call("POST", "/templates", fields)
        return created

    def create_endpoint(self, fields: Record) -> Record:
        """A new endpoint, with its id."""
        created: Record = self._call("POST", "/endpoints", fields)
        return created

    def update_endpoint(self, endpoint: str, fields: Record) -> None:
        """Change these fields; a change of template rolls the workers."""
        self._call("PATCH", f"/endpoints/{endpoint}", fields)

    def id_of(self, collection: str, name: str) -> str:
        """The id of what carries this name or id in `networkvolumes` or `containerregistryauth`."""
        found: list[Record] = self._call("GET", f"/{collection}")
        ids = [str(item["id"]) for item in found if name in (item["id"], item.get("name"))]
        if len(ids) != 1:
            raise ApiError(f"{len(ids)} of the account's {collection} are called {name!r}, one is needed")
        return ids[0]

    def _call(self, method: str, path: str, fields: Record | None = None) -> Any:
        try:
            answer = self._session.request(method, self._url + path, json=fields, timeout=TIMEOUT_S)
        except requests.RequestException as error:
            raise ApiError(f"{method} {path}: {error}") from error
        if not answer.ok:
            raise ApiError(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json() if answer.content else None
