"""Bring a RunPod endpoint to the state of deploy/endpoint.yaml: scripts/deploy plan | apply | status | rollback

plan shows what differs; apply shows it, asks, does it, and waits until no worker of the old template is left; status
tells image and workers; rollback moves the endpoint to the template before and waits. The key is RUNPOD_API_KEY.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from scripts.deploy_plan import (
    Change,
    PlanError,
    Target,
    differences,
    endpoint_fields,
    previous_of,
    read_target,
    readme,
    template_fields,
)
from scripts.runpod_api import DEFAULT_URL, ApiError, Record, RunpodApi

FILE = Path(__file__).resolve().parents[1] / "deploy" / "endpoint.yaml"
POLL_S = 10.0
NEW = "(made by apply)"


class Deployment:
    """One endpoint of the account."""

    def __init__(self, api: RunpodApi, target: Target) -> None:
        self._api = api
        self._target = target
        self.endpoint = self._find_endpoint()

    def _find_endpoint(self) -> Record | None:
        # RunPod marks the names of endpoints with FlashBoot.
        names = {self._target.name, f"{self._target.name} -fb"}
        found = [endpoint for endpoint in self._api.endpoints() if endpoint.get("name") in names]
        if len(found) > 1:
            raise PlanError(f"{len(found)} endpoints are called {self._target.name}")
        return found[0] if found else None

    def _wanted_template(self) -> tuple[dict[str, object], Record | None]:
        credential = self._target.registry_credential
        auth = self._api.id_of("containerregistryauth", credential) if credential else None
        wanted = template_fields(self._target, auth)
        there = [template for template in self._api.templates() if template.get("name") == wanted["name"]]
        return wanted, there[0] if there else None

    def _wanted_endpoint(self, template_id: str) -> dict[str, object]:
        volume = self._target.network_volume
        return endpoint_fields(self._target, template_id, self._api.id_of("networkvolumes", volume) if volume else None)

    def changes(self) -> list[Change]:
        """What `apply` would do; nothing when everything is as it should be."""
        template, there = self._wanted_template()
        wanted = self._wanted_endpoint(str(there["id"]) if there else NEW)
        if self.endpoint is None:
            return [Change(field, None, value) for field, value in {**template, **wanted}.items()]
        old: Record = self.endpoint.get("template") or {}
        moved = differences(wanted, self.endpoint)
        if any(change.field == "templateId" for change in moved):
            moved += differences({key: value for key, value in template.items() if key != "name"}, old)
        return moved

    def apply(self) -> str:
        """Do it; the template's id."""
        template, there = self._wanted_template()
        before = str(self.endpoint["templateId"]) if self.endpoint else None
        template_id = str((there or self._api.create_template({**template, "readme": readme(before)}))["id"])
        wanted = self._wanted_endpoint(template_id)
        if self.endpoint is None:
            self.endpoint = self._api.create_endpoint({"name": self._target.name, **wanted})
        elif differences(wanted, self.endpoint):
            self._api.update_endpoint(self.endpoint["id"], wanted)
        self._refresh()
        return template_id

    def previous_template(self) -> str:
        """The template before the one in use. Raises `PlanError` if there is none."""
        previous = previous_of(self._existing().get("template") or {})
        if previous is None:
            raise PlanError("the template in use does not name the one before it")
        return previous

    def move_to(self, template_id: str) -> None:
        """Put the endpoint on this template, and leave the rest."""
        self._api.update_endpoint(self._existing()["id"], {"templateId": template_id})
        self._refresh()

    def _refresh(self) -> None:
        """See what was changed; a list that does not show it yet changes nothing."""
        self.endpoint = self._find_endpoint() or self.endpoint

    def workers(self) -> list[Record]:
        """Those that exist now."""
        return self._api.workers(self._existing()["id"])

    def wait_for(self, template_id: str, timeout_s: float, pause: Callable[[float], None]) -> None:
        """Until no worker of another template is left. With `workers.min` 0 the first job starts the new ones."""
        deadline = time.monotonic() + timeout_s
        while stale := [worker for worker in self.workers() if worker.get("templateId") not in (template_id, None)]:
            if time.monotonic() > deadline:
                raise ApiError(f"after {timeout_s:.0f} s {len(stale)} workers still run the template before")
            print(f"{len(stale)} workers of the template before are left", flush=True)
            pause(POLL_S)

    def _existing(self) -> Record:
        if self.endpoint is None:
            raise PlanError(f"there is no endpoint {self._target.name}")
        return self.endpoint


def plan(deployment: Deployment) -> bool:
    """Print what differs; whether anything does."""
    changes = deployment.changes()
    print("\n".join(map(str, changes)) or "nothing to change")
    return bool(changes)


def apply(deployment: Deployment, options: argparse.Namespace) -> None:
    """Show, ask, do, wait."""
    if not plan(deployment):
        return
    if not options.yes and input("apply? [y/N] ").lower() != "y":
        raise PlanError("nothing was changed")
    template_id = deployment.apply()
    deployment.wait_for(template_id, options.timeout, time.sleep)
    status(deployment)


def status(deployment: Deployment) -> None:
    """Print the endpoint's id, image and workers."""
    endpoint = deployment.endpoint
    print(f"endpoint {endpoint['id'] if endpoint else 'absent'}")
    if endpoint:
        print(f"image {(endpoint.get('template') or {}).get('imageName', 'see the template')}")
        for worker in deployment.workers():
            print(f"worker {worker['id']} {worker.get('desiredStatus')} template {worker.get('templateId')}")


def rollback(deployment: Deployment, options: argparse.Namespace) -> None:
    """Move to the template before, and wait."""
    previous = deployment.previous_template()
    print(f"back to template {previous}; workers, GPUs and time limits stay as they are")
    deployment.move_to(previous)
    deployment.wait_for(previous, options.timeout, time.sleep)
    status(deployment)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["plan", "apply", "status", "rollback"])
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--image", help="image by digest, in place of the file's")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--timeout", type=float, default=1800, help="seconds to wait for workers (default: 1800)")
    return parser


def main() -> int:
    """Exit status: 2 where plan finds something to change, 1 where something failed."""
    options = _parser().parse_args()
    try:
        key = os.environ.get("RUNPOD_API_KEY")
        if not key:
            raise PlanError("set RUNPOD_API_KEY")
        api = RunpodApi(key, os.environ.get("RUNPOD_REST_URL", DEFAULT_URL))
        deployment = Deployment(api, read_target(options.file, options.image))
        match options.command:
            case "plan":
                return 2 if plan(deployment) else 0
            case "apply":
                apply(deployment, options)
            case "status":
                status(deployment)
            case "rollback":
                rollback(deployment, options)
    except (PlanError, ApiError) as error:
        print(f"deploy: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
