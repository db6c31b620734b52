"""A real emulator in a thread of its own, with a hand-fed queue in the place of slow workers."""

import asyncio
import base64
import copy
import gzip
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from glmocr_runpod.config import Config
from glmocr_runpod.identity import sha256

from emulator import Emulator, ManualClock
from emulator.clock import Clock, SystemClock
from emulator.jobs import Job
from handler.identity import content_key
from handler.job_input import parse_input
from tests.contract.golden_files import golden

T = TypeVar("T")
Answer = Callable[[Job], Awaitable[dict[str, Any]]]


class Rig:
    """The emulator, its address as the client's settings, and access to its loop."""

    def __init__(self, emulator: Emulator, loop: asyncio.AbstractEventLoop, state: Path) -> None:
        self.emulator = emulator
        self.loop = loop
        self.state = state

    @property
    def config(self) -> Config:
        return Config(
            runpod_api_key=self.emulator.api_key,
            runpod_endpoint_id=self.emulator.endpoint,
            runpod_api_url=self.emulator.base_url,
            glmocr_state_dir=str(self.state),
        )

    @property
    def environment(self) -> dict[str, str]:
        names = ("runpod_api_key", "runpod_endpoint_id", "runpod_api_url", "glmocr_state_dir")
        return {name.upper(): getattr(self.config, name) for name in names}

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the emulator's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def do(self, work: Callable[[], T]) -> T:
        """The same for a plain function."""

        async def wrapped() -> T:
            return work()

        return self.call(wrapped())

    def jobs(self) -> list[Job]:
        return self.do(self.emulator.jobs)

    @contextmanager
    def worker(self, answer: Answer | None = None) -> Iterator[None]:
        """Takes jobs from the queue and ends them with what `answer` gives, as fast as it can."""
        task = self.do(lambda: asyncio.create_task(_work(self.emulator, answer or read)))
        try:
            yield
        finally:
            self.do(task.cancel)


@contextmanager
def emulated(state: Path, clock: Clock | None = None, **options: Any) -> Iterator[Rig]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="emulator")
    thread.start()

    def call(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(60)

    async def make() -> Emulator:
        return Emulator(clock=clock or SystemClock(), **options)

    emulator = call(make())
    try:
        call(emulator.__aenter__())
        yield Rig(emulator, loop, state)
    finally:
        call(emulator.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class VirtualTime:
    """The client's clock on the emulator's: waiting moves both."""

    def __init__(self, rig: Rig, clock: ManualClock) -> None:
        self._rig = rig
        self._clock = clock
        self.jump = 0.0
        """Added to the wall clock: somebody set it."""
        self.waits: list[float] = []

    def wall(self) -> float:
        return 1_800_000_000 + self._clock.now() + self.jump

    def steady(self) -> float:
        return self._clock.now()

    def wait(self, seconds: float, stop: threading.Event) -> None:
        self.waits.append(seconds)
        self._rig.call(self._clock.advance(seconds))


async def read(job: Job) -> dict[str, Any]:
    """What a worker would post: the golden result, made out to this document."""
    return {"output": result_for(job.input)}


def result_for(job_input: dict[str, Any]) -> dict[str, Any]:
    document = decoded(job_input)
    request = parse_input(job_input)
    output: dict[str, Any] = copy.deepcopy(golden("inline"))
    output["document"] |= {
        "sha256": sha256(document),
        "size": len(document),
        "filename": request.filename,
        "content_key": content_key(sha256(document), request),
    }
    output["idempotency_key"] = request.idempotency_key
    return output


def decoded(job_input: dict[str, Any]) -> bytes:
    data = base64.b64decode(job_input["file_base64"])
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


async def _work(emulator: Emulator, answer: Answer) -> None:
    running: set[asyncio.Task[None]] = set()

    async def finish(job: Job) -> None:
        emulator.queue.finish(job, await answer(job))

    while True:
        changed = emulator.queue.changed.wait()
        for job in emulator.queue.take("hand", 64):
            task = asyncio.create_task(finish(job))
            running.add(task)
            task.add_done_callback(running.discard)
        await changed
