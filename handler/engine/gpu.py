"""The GPUs this worker may use, from the driver's management library: no CUDA context, no torch, milliseconds."""

import logging
from contextlib import suppress
from dataclasses import asdict, dataclass

import pynvml

from handler.schema import JsonValue

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device. Memory in MiB; None where the driver does not tell (DGX Spark shares the machine's memory)."""

    index: int
    name: str
    capability: tuple[int, int]
    memory_total: int | None
    memory_free: int | None
    driver: str
    cuda: tuple[int, int]
    """The newest CUDA version the driver offers."""

    def as_json(self) -> dict[str, JsonValue]:
        """For `debug`."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def visible_gpus(mask: str | None = None) -> tuple[Gpu, ...]:
    """The devices, in the order of `mask` (CUDA_VISIBLE_DEVICES: indices or UUIDs); none without a driver.

    A device that the driver cannot describe (fallen off the bus) is left out, with a warning.
    """
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(gpu for handle in _handles(mask) if (gpu := _described(handle)))
    finally:
        pynvml.nvmlShutdown()


def _handles(mask: str | None) -> list[object]:
    entries = [str(index) for index in range(pynvml.nvmlDeviceGetCount())] if mask is None else mask.split(",")
    handles = []
    for entry in filter(None, (part.strip() for part in entries)):
        try:
            by_index = entry.isdigit()
            handles.append(
                pynvml.nvmlDeviceGetHandleByIndex(int(entry)) if by_index else pynvml.nvmlDeviceGetHandleByUUID(entry)
            )
        except pynvml.NVMLError:
            break  # CUDA, too, ignores everything behind the first entry it does not know
    return handles


def _described(handle: object) -> Gpu | None:
    try:
        return _describe(handle)
    except pynvml.NVMLError as error:
        log.warning("a GPU is left out, its driver says: %s", error)
        return None


def _describe(handle: object) -> Gpu:
    cuda = int(pynvml.nvmlSystemGetCudaDriverVersion_v2())
    memory = None
    with suppress(pynvml.NVMLError):
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return Gpu(
        index=int(pynvml.nvmlDeviceGetIndex(handle)),
        name=str(pynvml.nvmlDeviceGetName(handle)),
        capability=tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle)),
        memory_total=int(memory.total) >> 20 if memory else None,
        memory_free=int(memory.free) >> 20 if memory else None,
        driver=str(pynvml.nvmlSystemGetDriverVersion()),
        cuda=(cuda // 1000, cuda % 1000 // 10),
    )
