from collections.abc import Iterator
from pathlib import Path

import pytest

from emulator import ManualClock
from tests.client.rig import Rig, VirtualTime, emulated


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """An emulator in real time."""
    with emulated(tmp_path / "state") as rig:
        yield rig


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def still(tmp_path: Path, clock: ManualClock) -> Iterator[Rig]:
    """An emulator whose time stands still until the client waits."""
    with emulated(tmp_path / "state", clock) as rig:
        yield rig


@pytest.fixture
def time(still: Rig, clock: ManualClock) -> VirtualTime:
    return VirtualTime(still, clock)
