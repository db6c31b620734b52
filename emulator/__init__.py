"""A RunPod queue endpoint on localhost, for the demo and the tests. Never part of the image.

`Emulator` is the library, `python -m emulator` the program; `emulator/README.md` documents both.
"""

from emulator.autoscaler import ScalerType, Scaling, WorkerBootFailed
from emulator.clock import Clock, ManualClock, SystemClock
from emulator.faults import Fault, FaultKind
from emulator.jobs import Job, JobStatus
from emulator.limits import Limits, Rate
from emulator.processes import WorkerCommand
from emulator.server import Emulator
from emulator.threaded import ThreadedEmulator, threaded

__all__ = [
    "Clock",
    "Emulator",
    "Fault",
    "FaultKind",
    "Job",
    "JobStatus",
    "Limits",
    "ManualClock",
    "Rate",
    "ScalerType",
    "Scaling",
    "SystemClock",
    "ThreadedEmulator",
    "WorkerBootFailed",
    "WorkerCommand",
    "threaded",
]
