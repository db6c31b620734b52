"""The blocking shell: performs a flow's effects with threads and a real or an injected clock."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

from glmocr_runpod.effects import (
    Call,
    Effect,
    Flow,
    Outcome,
    Overheard,
    Pause,
    Request,
    Send,
    Together,
    write_down,
)
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
    """Drives flows to their end. `stop` ends every flow with `Closed` at its next pause or request."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._stop = threading.Event()
        self._inner: set[Runner] = set()

    def stop(self) -> None:
        """End all flows at their next pause or request."""
        self._stop.set()
        for inner in list(self._inner):
            inner.stop()

    def run(self, flow: Flow[T]) -> T:
        """What the flow returns; raises what it raises."""
        try:
            effect = next(flow)
            while True:
                try:
                    answer = self._perform(effect)
                except (ClientError, OSError) as error:
                    effect = flow.throw(error)
                except Overheard as interrupted:
                    write_down(flow, interrupted.outcome)
                    raise KeyboardInterrupt from None
                else:
                    effect = flow.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            flow.close()

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case Send(request):
                self._go_on()
                return self._submit(request) if request.fresh else self._transport.send(request)
            case Pause(seconds):
                return self._pause(seconds)
            case Call(work):
                return work()
            case Together(flows, at_once):
                return self._together(flows, at_once)

    def _submit(self, request: Request) -> Outcome:
        """In a thread of its own, where no Ctrl-C breaks it."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            answer = pool.submit(self._transport.send, request)
            try:
                return answer.result()
            except KeyboardInterrupt:
                raise Overheard(answer.result()) from None

    def _pause(self, seconds: float) -> None:
        self._clock.wait(seconds, self._stop)
        self._go_on()

    def _go_on(self) -> None:
        """A client that was closed sends nothing more; what it has received it still writes."""
        if self._stop.is_set():
            raise Closed

    def _together(self, flows: Sequence[Flow[Any]], at_once: int) -> list[Any]:
        """Side by side. What ends one of them otherwise than by a `ClientError` ends these, and no other call's."""
        inner = Runner(self._transport, self._clock)
        self._inner.add(inner)
        if self._stop.is_set():
            inner.stop()
        with ThreadPoolExecutor(max_workers=max(1, min(at_once, len(flows)))) as pool:
            futures = [pool.submit(inner._settle, flow) for flow in flows]
            try:
                return [future.result() for future in futures]
            except BaseException:
                # A Ctrl-C reaches this thread only; the others must neither sleep on nor begin anything.
                inner.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
            finally:
                self._inner.discard(inner)

    def _settle(self, flow: Flow[Any]) -> Any:
        try:
            return self.run(flow)
        except ClientError as error:
            return error
