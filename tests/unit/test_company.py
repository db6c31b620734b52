import asyncio

from handler.company import SINGLED_OUT_AT_ONCE, Care, Company


class Room:
    """Pages that stay until they are told to go."""

    def __init__(self) -> None:
        self.company = Company()
        self.inside: list[str] = []
        self._go: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, care: Care) -> None:
        self._go[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._stay(name, care))
        await settle()

    async def go(self, name: str) -> None:
        self._go[name].set()
        await self._tasks[name]
        await settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await settle()

    async def _stay(self, name: str, care: Care) -> None:
        async with self.company.reading(care):
            self.inside.append(name)
            try:
                await self._go[name].wait()
            finally:
                self.inside.remove(name)


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


async def test_few_pages_that_are_singled_out_are_read_at_a_time_beside_the_others() -> None:
    room = Room()
    await room.come("a", Care.TOGETHER)
    singled_out = [f"s{n}" for n in range(SINGLED_OUT_AT_ONCE + 1)]
    for name in singled_out:
        await room.come(name, Care.SINGLED_OUT)
    await room.come("b", Care.TOGETHER)
    assert room.inside == ["a", *singled_out[:-1], "b"]
    await room.go("s0")
    assert room.inside == ["a", *singled_out[1:-1], "b", singled_out[-1]]


async def test_a_page_alone_waits_for_all_others_and_holds_up_new_ones() -> None:
    room = Room()
    await room.come("a", Care.TOGETHER)
    await room.come("alone", Care.ALONE)
    await room.come("b", Care.TOGETHER)
    await room.come("s", Care.SINGLED_OUT)
    await room.come("alone too", Care.ALONE)
    assert room.inside == ["a"]
    await room.go("a")
    assert room.inside == ["alone"]
    await room.go("alone")
    assert room.inside == ["alone too"]
    await room.go("alone too")
    assert sorted(room.inside) == ["b", "s"]


async def test_whoever_is_cancelled_leaves_nobody_waiting() -> None:
    room = Room()
    await room.come("a", Care.TOGETHER)
    await room.come("alone", Care.ALONE)
    await room.come("b", Care.TOGETHER)
    await room.cancel("alone")
    assert room.inside == ["a", "b"]
    await room.come("s1", Care.SINGLED_OUT)
    await room.come("s2", Care.SINGLED_OUT)
    await room.cancel("s1")
    assert room.inside == ["a", "b", "s2"]
    await room.come("alone", Care.ALONE)
    for name in ("a", "b", "s2"):
        await room.cancel(name)
    assert room.inside == ["alone"]
    await room.cancel("alone")
    await room.come("c", Care.TOGETHER)
    assert room.inside == ["c"]
