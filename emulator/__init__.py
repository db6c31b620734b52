"""A RunPod queue endpoint on localhost, for the demo and the tests. Never part of the image.

`Emulator` is the library, `python -m emulator` the program; `emulator/README.md` documents both.
"""

from emulator.clock import Clock, ManualClock, SystemClock
from emulator.jobs import Job, JobStatus
from emulator.limits import Limits
from emulator.server import Emulator

__all__ = ["Clock", "Emulator", "Job", "JobStatus", "Limits", "ManualClock", "SystemClock"]
