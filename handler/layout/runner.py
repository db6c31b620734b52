"""Runs the layout model in one thread and gives it pages in micro-batches, but never makes a page wait for a batch."""

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from handler.layout.detector import Detection, Detector, Pixels


class LayoutFailed(Exception):
    """The layout model raised for this page, alone, after it had been tried before."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    pixels: Pixels
    answer: "asyncio.Future[list[Detection]]"


class LayoutRunner:
    """One detector, one thread, one queue. Whatever is waiting when the thread gets free becomes the next batch.

    `pixels` must stay valid until the answer is there. Belongs to the event loop it is first used in.
    """

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="layout")
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def detect(self, pixels: Pixels) -> list[Detection]:
        """The page's regions in reading order. Raises `LayoutFailed` after one retry."""
        waiting = _Waiting(pixels, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._drain())
        # The thread may still look at the pixels when we are cancelled; they are ours until it has answered.
        try:
            return await asyncio.shield(waiting.answer)
        except asyncio.CancelledError:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
            elif not waiting.answer.done():
                await asyncio.wait({waiting.answer})
            raise

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._split()
            answers = await self._run(batch)
            if isinstance(answers, list):
                for waiting, detections in zip(batch, answers, strict=True):
                    waiting.answer.set_result(detections)
            else:
                await self._retry_alone(batch)

    def _split(self) -> tuple[list[_Waiting], list[_Waiting]]:
        size = max(1, self.detector.batch_size)
        return self._waiting[:size], self._waiting[size:]

    async def _retry_alone(self, batch: list[_Waiting]) -> None:
        for waiting in batch:
            answers = await self._run([waiting])
            if isinstance(answers, list):
                waiting.answer.set_result(answers[0])
            else:
                failure = LayoutFailed(f"{type(answers).__name__}: {answers}")
                failure.__cause__ = answers
                waiting.answer.set_exception(failure)

    async def _run(self, batch: list[_Waiting]) -> list[list[Detection]] | BaseException:
        """The answers, or what the model raised: models raise anything, so the type cannot be narrowed."""
        loop = asyncio.get_running_loop()
        call = loop.run_in_executor(self._thread, self.detector.detect, [waiting.pixels for waiting in batch])
        await asyncio.wait({call})
        raised = call.exception()
        if raised is not None:
            return raised
        answers = call.result()
        if len(answers) != len(batch):
            return LayoutFailed(f"{len(answers)} answers for {len(batch)} pages")
        if not all(_is_somewhere(detection) for detections in answers for detection in detections):
            return LayoutFailed("a region's place is no number")
        return answers

    def close(self) -> None:
        """End the thread; what it is doing is not waited for."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _is_somewhere(detection: Detection) -> bool:
    """Broken weights say NaN, which compares with nothing: no step after this one would notice."""
    return all(math.isfinite(value) for value in detection.box.as_bbox())
