"""Faults on purpose: what the network, the platform's edge and its API do on a bad day."""

import itertools
import random
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from fnmatch import fnmatchcase

from aiohttp import web

from emulator.clock import Clock
from emulator.jobs import BadRequest, Json

Handle = Callable[[], Awaitable[web.StreamResponse]]


class FaultKind(StrEnum):
    """What happens to a request."""

    STATUS = "status"
    """Answered with `status` (and `retry_after`) instead of being handled."""
    RESET = "reset"
    """The connection is reset before the request is handled."""
    LOST_RESPONSE = "lost_response"
    """The request is handled, then the connection is reset without an answer."""
    HALF_RESPONSE = "half_response"
    """Handled; half of the answer is sent, then the connection closes."""
    SLOW_RESPONSE = "slow_response"
    """Handled; the answer comes byte by byte, `delay_s` apart."""
    DELAY = "delay"
    """Handled `delay_s` later."""
    REFUSE_RESULT = "refuse_result"
    """Operation `result`: refused with 400, the job completes without output."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One rule. It strikes requests of matching operations after the first `skip`, at most `times` of them.

    Operations are `run`, `runsync`, `status`, `stream`, `cancel`, `retry`, `purge-queue`, `health`, and of the workers
    `job-take`, `job-stop`, `result`, `progress`, `job-stream`, `ping`. `operation` may hold wildcards.
    """

    kind: FaultKind
    operation: str = "*"
    times: int | None = None
    skip: int = 0
    probability: float = 1.0
    status: int = 503
    retry_after: float | None = None
    delay_s: float = 1.0
    job_id: str = "*"

    @classmethod
    def parse(cls, wire: Json) -> "Fault":
        """From the admin route's JSON. Raises `BadRequest`."""
        known = {f.name for f in fields(cls)}
        if not isinstance(wire, Mapping) or not set(wire) <= known:
            raise BadRequest(f"a fault is an object with keys of {sorted(known)}")
        try:
            return cls(**{**wire, "kind": FaultKind(wire["kind"])})
        except (KeyError, ValueError) as error:
            raise BadRequest(f"kind must be one of {[k.value for k in FaultKind]}") from error

    def describe(self) -> dict[str, Json]:
        """As the admin route shows it."""
        return asdict(self)


@dataclass(slots=True)
class _Planned:
    fault: Fault
    seen: int = 0
    struck: int = 0


class FaultPlan:
    """The rules in force; the first that matches strikes. Reproducible for a given `seed`."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self._rules: dict[int, _Planned] = {}
        self._ids = itertools.count(1)

    def add(self, fault: Fault) -> int:
        """Put a rule in force; its id."""
        rule_id = next(self._ids)
        self._rules[rule_id] = _Planned(fault)
        return rule_id

    def remove(self, rule_id: int) -> None:
        """Lift one rule; unknown ids are ignored."""
        self._rules.pop(rule_id, None)

    def clear(self) -> None:
        """Lift all."""
        self._rules.clear()

    def struck(self, rule_id: int) -> int:
        """How often a rule has struck; 0 for one that was lifted."""
        rule = self._rules.get(rule_id)
        return rule.struck if rule else 0

    def describe(self) -> list[dict[str, Json]]:
        """All rules with their ids and counts."""
        return [{"id": i, "struck": r.struck, **r.fault.describe()} for i, r in self._rules.items()]

    def strike(self, operation: str, job_id: str = "") -> Fault | None:
        """The fault for this request, if any."""
        for rule in self._rules.values():
            fault = rule.fault
            if not fnmatchcase(operation, fault.operation) or not fnmatchcase(job_id, fault.job_id):
                continue
            rule.seen += 1
            exhausted = fault.times is not None and rule.struck >= fault.times
            if rule.seen <= fault.skip or exhausted or self._random.random() >= fault.probability:
                continue
            rule.struck += 1
            return fault
        return None


async def inflict(fault: Fault, request: web.Request, handle: Handle, clock: Clock) -> web.StreamResponse:
    """Answer the request the way the fault says."""
    if fault.kind is FaultKind.STATUS:
        headers = {} if fault.retry_after is None else {"Retry-After": f"{fault.retry_after:g}"}
        return web.json_response({"error": f"injected {fault.status}"}, status=fault.status, headers=headers)
    if fault.kind is FaultKind.RESET:
        return _reset(request)
    if fault.kind is FaultKind.DELAY:
        await clock.sleep(fault.delay_s)
    response = await handle()
    if fault.kind is FaultKind.LOST_RESPONSE:
        return _reset(request)
    if fault.kind in (FaultKind.HALF_RESPONSE, FaultKind.SLOW_RESPONSE):
        return await _spoil(fault, request, response, clock)
    return response


def _reset(request: web.Request) -> web.Response:
    transport = request.transport
    if transport is not None:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    return web.Response()


async def _spoil(fault: Fault, request: web.Request, whole: web.StreamResponse, clock: Clock) -> web.StreamResponse:
    body = whole.body if isinstance(whole, web.Response) and isinstance(whole.body, bytes) else b""
    response = web.StreamResponse(status=whole.status, headers={"Content-Type": whole.content_type})
    response.content_length = len(body)
    await response.prepare(request)
    if fault.kind is FaultKind.HALF_RESPONSE:
        await response.write(body[: len(body) // 2])
        if request.transport is not None:
            request.transport.close()
        return response
    for i in range(len(body)):
        await response.write(body[i : i + 1])
        await clock.sleep(fault.delay_s)
    return response
