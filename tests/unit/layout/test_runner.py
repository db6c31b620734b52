import asyncio
import math
import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from handler.geometry import PixelBox
from handler.layout.detector import Detection, Pixels
from handler.layout.runner import LayoutFailed, LayoutRunner
from handler.schema import Label


def page(mark: int) -> Pixels:
    return np.full((2, 2, 3), mark, dtype=np.uint8)


class Marking:
    """Sees one region per page, named by the page's grey value; can be held and can be told to raise."""

    name = "marking"
    version = None

    def __init__(self, batch_size: int = 4, fails: Callable[[Sequence[Pixels]], bool] = lambda pages: False) -> None:
        self.batch_size = batch_size
        self.batches: list[list[int]] = []
        self.go = threading.Event()
        self.go.set()
        self._fails = fails

    def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
        self.go.wait(5)
        self.batches.append([int(p[0, 0, 0]) for p in pages])
        if self._fails(pages):
            raise RuntimeError("CUDA out of memory")
        return [[Detection(Label.TEXT, PixelBox(int(p[0, 0, 0]), 0, 1, 1), 1.0)] for p in pages]


async def test_one_page_does_not_wait_for_a_batch() -> None:
    runner = LayoutRunner(Marking())
    [detection] = await runner.detect(page(7))
    assert detection.box.x0 == 7


async def test_waiting_pages_become_one_batch_and_get_their_own_answers() -> None:
    detector = Marking(batch_size=3)
    detector.go.clear()
    runner = LayoutRunner(detector)
    answers = [asyncio.create_task(runner.detect(page(i))) for i in range(5)]
    await asyncio.sleep(0)
    detector.go.set()
    found = await asyncio.gather(*answers)
    assert [regions[0].box.x0 for regions in found] == [0, 1, 2, 3, 4]
    assert sorted(mark for batch in detector.batches for mark in batch) == [0, 1, 2, 3, 4]
    assert max(map(len, detector.batches)) == 3


async def test_a_bad_page_costs_its_batch_nothing() -> None:
    detector = Marking(fails=lambda pages: any(p[0, 0, 0] == 2 for p in pages))
    runner = LayoutRunner(detector)
    found = await asyncio.gather(*(runner.detect(page(i)) for i in range(4)), return_exceptions=True)
    assert isinstance(found[2], LayoutFailed)
    assert "out of memory" in str(found[2])
    assert [i for i, answer in enumerate(found) if isinstance(answer, list)] == [0, 1, 3]


async def test_a_page_that_fails_once_is_tried_again() -> None:
    detector = Marking()
    detector._fails = lambda pages: len(detector.batches) == 1
    [detection] = await LayoutRunner(detector).detect(page(1))
    assert detection.box.x0 == 1
    assert detector.batches == [[1], [1]]


async def test_a_short_answer_is_a_failure() -> None:
    class Short(Marking):
        def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
            return []

    with pytest.raises(LayoutFailed, match="0 answers for 1 pages"):
        await LayoutRunner(Short()).detect(page(0))


async def test_a_cancelled_page_keeps_its_pixels_until_the_model_is_done() -> None:
    detector = Marking(batch_size=1)
    detector.go.clear()
    runner = LayoutRunner(detector)
    task = asyncio.create_task(runner.detect(page(1)))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.sleep(0.01)
    assert not task.done()
    detector.go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert detector.batches == [[1]]


async def test_a_cancelled_page_among_others_is_taken_out() -> None:
    detector = Marking(batch_size=1)
    detector.go.clear()
    runner = LayoutRunner(detector)
    first, second, third = (asyncio.create_task(runner.detect(page(mark))) for mark in (1, 2, 3))
    await asyncio.sleep(0.01)
    third.cancel()
    await asyncio.wait({third})
    assert third.cancelled()
    detector.go.set()
    await asyncio.gather(first, second)
    assert detector.batches == [[1], [2]]


async def test_a_region_that_is_nowhere_is_a_failure_of_the_model() -> None:
    detector = Marking()
    nowhere = PixelBox(math.nan, 0, 1, 1)  # type: ignore[arg-type]
    detector.detect = lambda pages: [[Detection(Label.TEXT, nowhere, 1.0)] for _ in pages]  # type: ignore[method-assign]
    with pytest.raises(LayoutFailed, match="no number"):
        await LayoutRunner(detector).detect(page(1))
