"""The GPUs this worker may use, from the driver's management library: no CUDA context, no torch, milliseconds."""

from contextlib import suppress
from dataclasses import asdict, dataclass

import pynvml

from handler.schema import JsonValue


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
    """The devices, in the order of `mask` (CUDA_VISIBLE_DEVICES: indices or UUIDs); none without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_describe(handle) for handle in _handles(mask))
    finally:
        pynvml.nvmlShutdown()


def _handles(mask: str | None) -> list[object]:
    if mask is None:
        return [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
    handles = []
    for entry in filter(None, (part.strip() for part in mask.split(","))):
        try:
            by_index = entry.isdigit()
            handles.append(
                pynvml.nvmlDeviceGetHandleByIndex(int(entry)) if by_index else pynvml.nvmlDeviceGetHandleByUUID(entry)
            )
        except pynvml.NVMLError:
            break  # CUDA, too, ignores everything behind the first entry it does not know
    return handles


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
