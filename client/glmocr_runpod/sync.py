"""The blocking shell: performs a flow's effects with threads and a real or an injected clock."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol, TypeVar

from glmocr_runpod.effects import Call, Effect, Flow, Outcome, Pause, Request, Send, Together
from glmocr_runpod.errors import ClientError, Closed

T = TypeVar("T")


class Transport(Protocol):
    """Sends one request. Never raises for anything the network or the server does."""

    def send(self, request: Request) -> Outcome:
        """The whole answer, or how it failed to come."""

    def close(self) -> None:
        """Let connections go."""


class Clock(Protocol):
    """Time as flows see it."""

    def wall(self) -> float:
        """Seconds since 1970; may jump."""

    def steady(self) -> float:
        """Seconds since some moment; never jumps, says nothing to another process."""

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Let time pass, or until `stop` is set."""


class SystemClock:
    """The machine's clock."""

    def wall(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def steady(self) -> float:
        """Seconds of the monotonic clock."""
        return time.monotonic()

    def wait(self, seconds: float, stop: threading.Event) -> None:
        """Sleep, or until `stop` is set."""
        stop.wait(seconds)


class Runner:
    """Drives flows to their end, in threads of their own: a Ctrl-C reaches the main thread only, and that one waits.

    `stop` ends every flow with `Closed` at its next pause or request.
    """

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._stop = threading.Event()
        self._inner: set[Runner] = set()
        self._submissions = 0
        self._submitted = threading.Condition()

    def stop(self) -> None:
        """End all flows at their next pause or request."""
        self._stop.set()
        for inner in list(self._inner):
            inner.stop()

    def settle(self) -> None:
        """After `stop`: wait until each submission on its way is answered and noted."""
        with self._submitted:
            self._submitted.wait_for(lambda: not self._submissions)
        for inner in list(self._inner):
            inner.settle()

    def run(self, flow: Flow[T]) -> T:
        """What the flow returns; raises what it raises."""
        (result,) = self._in_threads(Runner._drive, [flow], 1)
        return result

    def _in_threads(self, drive: Callable[["Runner", Flow[T]], T], flows: Sequence[Flow[T]], at_once: int) -> list[T]:
        """Side by side. What breaks off the wait for these ends these, and no other call's."""
        inner = Runner(self._transport, self._clock)
        self._inner.add(inner)
        if self._stop.is_set():
            inner.stop()
        pool = ThreadPoolExecutor(max_workers=max(1, min(at_once, len(flows))))
        try:
            return list(pool.map(partial(drive, inner), flows))
        finally:
            inner.stop()
            pool.shutdown(cancel_futures=True)
            # A pool interrupted while it starts a thread does not know that thread.
            inner.settle()
            self._inner.discard(inner)

    def _drive(self, flow: Flow[T]) -> T:
        try:
            effect = next(flow)
            while True:
                if isinstance(effect, Send) and effect.request.fresh:
                    with self._submitting():
                        effect = self._advance(flow, effect)
                else:
                    effect = self._advance(flow, effect)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    @contextlib.contextmanager
    def _submitting(self) -> Iterator[None]:
        with self._submitted:
            self._submissions += 1
        try:
            yield
        finally:
            with self._submitted:
                self._submissions -= 1
                self._submitted.notify_all()

    def _advance(self, flow: Flow[Any], effect: Effect) -> Effect:
        try:
            answer = self._perform(effect)
        except (ClientError, OSError) as error:
            return flow.throw(error)
        return flow.send(answer)

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Send(request):
                self._go_on()
                return self._transport.send(request)
            case Pause(seconds):
                self._clock.wait(seconds, self._stop)
                return self._go_on()
            case Call(work):
                return work()
            case Together(flows, at_once):
                return self._in_threads(Runner._outcome, flows, at_once)

    def _go_on(self) -> None:
        """A client that was closed sends nothing more; what it has received it still writes."""
        if self._stop.is_set():
            raise Closed

    def _outcome(self, flow: Flow[Any]) -> Any:
        try:
            return self._drive(flow)
        except ClientError as error:
            return error
