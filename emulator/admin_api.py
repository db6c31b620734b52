"""What tests in another process use: `/admin/...` with the same bearer key."""

import signal
from collections.abc import Mapping
from typing import TYPE_CHECKING

from aiohttp import web

from emulator.faults import Fault
from emulator.jobs import BadRequest, Job, Json
from emulator.public_api import read_json

if TYPE_CHECKING:
    from emulator.server import Emulator

BODY_LIMIT = 1_000_000


class AdminApi:
    """The handlers of the test operations."""

    def __init__(self, emulator: "Emulator") -> None:
        self._emulator = emulator

    def routes(self) -> Mapping[str, web.RouteDef]:
        """Operation name -> route."""
        return {
            "admin-state": web.get("/admin/state", self.state),
            "admin-fault": web.post("/admin/faults", self.add_fault),
            "admin-faults-clear": web.delete("/admin/faults", self.clear_faults),
            "admin-fault-lift": web.delete("/admin/faults/{rule}", self.remove_fault),
            "admin-skip": web.post("/admin/skip", self.skip),
            "admin-signal": web.post("/admin/workers/{worker}/signal", self.signal),
        }

    async def state(self, request: web.Request) -> web.Response:
        """Jobs ever seen, workers ever seen, requests per operation, faults in force."""
        emulator = self._emulator
        now = emulator.clock.now()
        workers = [{"id": w.id, "state": w.state, "pings": w.pings} for w in emulator.workers()]
        return web.json_response(
            {
                "jobs": [_describe(job, now) for job in emulator.jobs()],
                "workers": workers,
                "requests": dict(emulator.requests),
                "faults": emulator.faults.describe(),
            }
        )

    async def add_fault(self, request: web.Request) -> web.Response:
        """Put the fault given as JSON in force."""
        fault = Fault.parse(await read_json(request, BODY_LIMIT))
        return web.json_response({"id": self._emulator.faults.add(fault)})

    async def clear_faults(self, request: web.Request) -> web.Response:
        """Lift all faults."""
        self._emulator.faults.clear()
        return web.json_response({})

    async def remove_fault(self, request: web.Request) -> web.Response:
        """Lift one fault."""
        rule = request.match_info["rule"]
        if not rule.isdecimal():
            raise BadRequest("the id of a fault is a number")
        self._emulator.faults.remove(int(rule))
        return web.json_response({})

    async def skip(self, request: web.Request) -> web.Response:
        """`{"seconds": n}`: let time pass."""
        seconds = _field(await read_json(request, BODY_LIMIT), "seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
            raise BadRequest("seconds must be a number, 0 or more")
        await self._emulator.skip(seconds)
        return web.json_response({})

    async def signal(self, request: web.Request) -> web.Response:
        """`{"signal": "SIGKILL"}`: signal one of its own workers."""
        name = _field(await read_json(request, BODY_LIMIT), "signal")
        if name not in signal.Signals.__members__:
            raise BadRequest("unknown signal")
        await self._emulator.kill_worker(request.match_info["worker"], signal.Signals[name])
        return web.json_response({})


def _describe(job: Job, now: float) -> dict[str, Json]:
    """The job without its output, which may be large, with what only the platform knows."""
    shown = job.view(now)
    shown.pop("output", None)
    return {**shown, "hasOutput": job.has_output, "deliveries": job.deliveries, "refused": job.refused_posts}


def _field(body: Json, name: str) -> Json:
    if not isinstance(body, Mapping) or set(body) != {name}:
        raise BadRequest(f'the body must be {{"{name}": ...}}')
    return body[name]
