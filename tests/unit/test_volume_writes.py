import asyncio
import errno

import pytest

from handler.volume_writes import VolumeWrites


class Disk:
    """Refuses with `error` while there is one."""

    def __init__(self) -> None:
        self.error: int | None = None
        self.written: list[str] = []

    def write(self, what: str) -> None:
        if self.error is not None:
            raise OSError(self.error, "refused")
        self.written.append(what)


async def test_what_a_full_volume_refuses_is_written_in_order_when_it_can_be() -> None:
    disk, writes = Disk(), VolumeWrites("document")
    await writes.do(lambda: disk.write("a"))
    disk.error = errno.ENOSPC
    for name in "bc":
        await writes.do(lambda name=name: disk.write(name))
    assert (disk.written, writes.stuck) == (["a"], True)
    disk.error = None
    await writes.do(lambda: disk.write("d"))
    assert (disk.written, writes.stuck) == (["a", "b", "c", "d"], False)


async def test_what_is_refused_for_good_is_given_up_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    disk, writes = Disk(), VolumeWrites("document")
    disk.error = errno.EROFS
    for name in "abc":
        await writes.do(lambda name=name: disk.write(name))
    assert (writes.stuck, len(caplog.records)) == (False, 1)
    disk.error = None
    await writes.do(lambda: disk.write("d"))
    assert disk.written == ["d"]


async def test_many_at_once_are_each_done_once() -> None:
    disk, writes = Disk(), VolumeWrites("document")
    names = [f"{n}" for n in range(200)]
    await asyncio.gather(*(writes.do(lambda name=name: disk.write(name)) for name in names))
    assert disk.written == names
