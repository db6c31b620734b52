from collections.abc import Iterator
from dataclasses import dataclass

import pynvml
import pytest

from handler.engine.gpu import Gpu, visible_gpus


@dataclass(frozen=True)
class Memory:
    total: int
    free: int


class Driver:
    """The driver's library with two cards, the second of which shares the machine's memory."""

    cards = (("GPU-aaa", "RTX 4090", (8, 9), Memory(24564 << 20, 24000 << 20)), ("GPU-bbb", "GB10", (12, 1), None))

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = 0
        answers = {
            "nvmlInit": lambda: self.count(1),
            "nvmlShutdown": lambda: self.count(-1),
            "nvmlDeviceGetCount": lambda: len(self.cards),
            "nvmlDeviceGetHandleByIndex": self.by_index,
            "nvmlDeviceGetHandleByUUID": self.by_uuid,
            "nvmlDeviceGetIndex": lambda handle: handle,
            "nvmlDeviceGetName": lambda handle: self.cards[handle][1],
            "nvmlDeviceGetCudaComputeCapability": lambda handle: self.cards[handle][2],
            "nvmlDeviceGetMemoryInfo": self.memory,
            "nvmlSystemGetDriverVersion": lambda: "575.57.08",
            "nvmlSystemGetCudaDriverVersion_v2": lambda: 12090,
        }
        for name, answer in answers.items():
            monkeypatch.setattr(pynvml, name, answer)

    def count(self, by: int) -> None:
        self.open += by

    def by_index(self, index: int) -> int:
        if index >= len(self.cards):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return index

    def by_uuid(self, uuid: str) -> int:
        for index, card in enumerate(self.cards):
            if card[0] == uuid:
                return index
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def memory(self, handle: int) -> Memory:
        memory = self.cards[handle][3]
        if memory is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return memory


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    driver = Driver(monkeypatch)
    yield driver
    assert driver.open == 0, "the library was not closed"


def test_it_describes_what_the_driver_has(driver: Driver) -> None:
    first, second = visible_gpus()
    assert first == Gpu(0, "RTX 4090", (8, 9), 24564, 24000, "575.57.08", (12, 9))
    assert (second.capability, second.memory_total, second.memory_free) == ((12, 1), None, None)
    assert first.as_json()["capability"] == [8, 9]


@pytest.mark.parametrize(
    ("mask", "indices"),
    [("1", [1]), ("1,0", [1, 0]), ("GPU-bbb", [1]), ("", []), ("0, GPU-bbb", [0, 1]), ("0,7,1", [0]), ("-1", [])],
)
def test_the_mask_means_what_it_means_to_cuda(driver: Driver, mask: str, indices: list[int]) -> None:
    assert [gpu.index for gpu in visible_gpus(mask)] == indices


@pytest.mark.parametrize("call", ["nvmlDeviceGetHandleByIndex", "nvmlDeviceGetCudaComputeCapability"])
def test_a_gpu_that_fell_off_the_bus_is_none(driver: Driver, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def lost(handle: int) -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    monkeypatch.setattr(pynvml, call, lost)
    assert visible_gpus() == ()


def test_a_machine_without_a_driver_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(pynvml, "nvmlInit", missing)
    assert visible_gpus() == ()
