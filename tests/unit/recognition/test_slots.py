import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.engine.api import EngineBusy, EngineLoad
from handler.recognition.slots import PUSH_BACK_PAUSE_S, RECOVERY_PAUSE_S, RegionSlots


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Floor:
    """Tasks that enter the slots and leave when told; `entered` is the order of entry."""

    def __init__(self, slots: RegionSlots) -> None:
        self.slots = slots
        self.entered: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def enter(self, name: str, job: str = "a", cost: float = 0.0) -> None:
        self._leave[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._stay(name, job, cost))
        await settle()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await self.tasks[name]
        await settle()

    async def clear(self) -> None:
        for event in self._leave.values():
            event.set()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*self.tasks.values())

    async def _stay(self, name: str, job: str, cost: float) -> None:
        async with self.slots.slot(job, cost):
            self.entered.append(name)
            await self._leave[name].wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_free_slot_is_given_at_once_and_no_more_than_the_limit() -> None:
    floor = Floor(RegionSlots(engine_slots=2))
    for name in "abcd":
        await floor.enter(name)
    assert floor.entered == ["a", "b", "c"]
    assert (floor.slots.limit, floor.slots.in_flight, floor.slots.waiting) == (3, 3, 1)
    await floor.leave("b")
    assert floor.entered[-1] == "d"
    await floor.clear()
    assert (floor.slots.in_flight, floor.slots.waiting) == (0, 0)


async def test_a_costly_region_goes_before_what_is_read_while_it_runs_and_no_further() -> None:
    floor = Floor(RegionSlots(fixed=1, head_start=1.0))
    await floor.enter("first", cost=10)
    texts = [f"text{i}" for i in range(8)]
    for name in texts:
        await floor.enter(name, cost=10)
    # 50 of a mean of 14 put it 3.6 places ahead, where a text is put 1 ahead: before the last two texts.
    await floor.enter("table", cost=50)
    for name in ("first", *texts[:6], "table", *texts[6:]):
        await floor.leave(name)
    assert floor.entered == ["first", *texts[:6], "table", *texts[6:]]


async def test_without_head_start_costs_do_not_matter() -> None:
    floor = Floor(RegionSlots(fixed=1, head_start=0.0))
    names = [f"r{i}" for i in range(4)]
    for name, cost in zip(names, (1, 9, 3, 27), strict=True):
        await floor.enter(name, cost=cost)
    for name in names:
        await floor.leave(name)
    assert floor.entered == names


async def test_a_cheap_region_is_not_overtaken_for_ever() -> None:
    floor = Floor(RegionSlots(fixed=1, head_start=2.0))
    await floor.enter("held", cost=5)
    await floor.enter("cheap", cost=1)
    last = "held"
    for i in range(10):
        await floor.enter(f"dear{i}", cost=10)
        await floor.leave(last)
        last = floor.entered[-1]
        if last == "cheap":
            break
    assert last == "cheap"
    await floor.clear()


async def test_equal_costs_keep_their_order() -> None:
    floor = Floor(RegionSlots(fixed=1))
    names = [f"r{i}" for i in range(6)]
    for name in names:
        await floor.enter(name, cost=7)
    for name in names:
        await floor.leave(name)
    assert floor.entered == names


async def test_a_short_job_does_not_wait_for_a_long_one() -> None:
    floor = Floor(RegionSlots(fixed=4))
    long_job = [f"long{i}" for i in range(20)]
    for name in long_job:
        await floor.enter(name, job="long", cost=100)
    for name in ("short0", "short1"):
        await floor.enter(name, job="short", cost=1)
    await floor.leave("long0")
    await floor.leave("long1")
    assert floor.entered[4:] == ["short0", "short1"]
    await floor.leave("long2")
    assert floor.entered[6:] == ["long4"]
    await floor.clear()


async def test_a_cancelled_waiter_is_passed_over_and_a_cancelled_holder_gives_back() -> None:
    floor = Floor(RegionSlots(fixed=1))
    for name in ("held", "gone", "next"):
        await floor.enter(name)
    await floor.enter("other", job="b")
    floor.tasks["gone"].cancel()
    floor.tasks["held"].cancel()
    await settle()
    assert floor.entered == ["held", "other"]
    await floor.leave("other")
    assert floor.entered == ["held", "other", "next"]
    await floor.leave("next")
    assert (floor.slots.in_flight, floor.slots.waiting) == (0, 0)


async def test_a_slot_given_to_a_task_that_is_cancelled_before_it_runs_is_not_lost() -> None:
    floor = Floor(RegionSlots(fixed=1))
    async with floor.slots.slot("held"):
        for name in ("unlucky", "next"):
            await floor.enter(name)
    floor.tasks["unlucky"].cancel()
    await settle()
    assert floor.entered == ["next"]
    await floor.leave("next")
    assert floor.slots.in_flight == 0


async def test_grows_while_the_engine_could_take_more() -> None:
    floor = Floor(RegionSlots(engine_slots=8))
    for i in range(40):
        await floor.enter(str(i))
    assert floor.slots.limit == 12
    for _ in range(50):
        floor.slots.observe(EngineLoad(running=floor.slots.in_flight, queued=0))
        await settle()
    assert floor.slots.limit == floor.slots.in_flight == 24
    await floor.clear()


async def test_does_not_grow_when_nobody_waits_or_the_engine_queues() -> None:
    slots = RegionSlots(engine_slots=8)
    slots.observe(EngineLoad(running=0, queued=0))
    slots.observe(EngineLoad(running=8, queued=4))
    slots.observe(EngineLoad(running=8, queued=4))
    assert slots.limit == 12


async def crowd(floor: Floor, count: int) -> None:
    """Enter so many, so that as many as the limit allows are in the engine."""
    for i in range(count):
        await floor.enter(str(i))


async def test_shrinks_to_what_a_full_kv_pool_really_runs() -> None:
    floor = Floor(RegionSlots(engine_slots=64))
    await crowd(floor, 96)
    floor.slots.observe(EngineLoad(running=20, queued=76))
    assert floor.slots.limit == 96, "one crowded moment may be a burst"
    for _ in range(40):
        floor.slots.observe(EngineLoad(running=20, queued=76))
    assert floor.slots.limit == 30
    await floor.clear()


async def test_workers_that_share_an_engine_together_ask_for_what_one_alone_would() -> None:
    floors = [Floor(RegionSlots(engine_slots=16)) for _ in range(3)]
    for floor in floors:
        await crowd(floor, 40)
    for _ in range(6):
        in_engine = sum(floor.slots.in_flight for floor in floors)
        for floor in floors:
            floor.slots.observe(EngineLoad(running=16, queued=in_engine - 16))
        for floor in floors:
            for name in [name for name in floor.entered if not floor.tasks[name].done()]:
                if floor.slots.in_flight > floor.slots.limit:
                    await floor.leave(name)
    assert [floor.slots.limit for floor in floors] == [8, 8, 8]
    for floor in floors:
        await floor.clear()


async def test_busy_answers_lower_the_limit_which_comes_back() -> None:
    clock = Clock()
    slots = RegionSlots(engine_slots=64, clock=clock)

    async def refused() -> None:
        async with slots.slot("job"):
            raise EngineBusy("503")

    for _ in range(3):
        with pytest.raises(EngineBusy):
            await refused()
    assert slots.limit == 72, "a burst of refusals counts once"
    clock.now += PUSH_BACK_PAUSE_S
    slots.pushed_back()
    assert slots.limit == 54
    slots.observe(None)
    assert slots.limit == 54
    clock.now += RECOVERY_PAUSE_S
    for _ in range(20):
        slots.observe(None)
    assert slots.limit == 96


async def test_the_operators_limit_neither_grows_nor_shrinks() -> None:
    clock = Clock()
    floor = Floor(RegionSlots(engine_slots=64, fixed=2, clock=clock))
    for name in "abc":
        await floor.enter(name)
    for load in (EngineLoad(running=2, queued=0), EngineLoad(running=1, queued=50), EngineLoad(running=1, queued=50)):
        floor.slots.observe(load)
    assert floor.slots.limit == 2
    await floor.clear()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.sampled_from(["keep", "cancel"])), max_size=40),
    st.integers(1, 5),
    st.floats(0, 6),
)
def test_every_region_gets_its_slot_and_the_limit_holds(
    arrivals: list[tuple[str, int, str]], limit: int, head_start: float
) -> None:
    async def scenario() -> None:
        slots = RegionSlots(fixed=limit, head_start=head_start)
        done: list[int] = []

        async def read(number: int, job: str, cost: int) -> None:
            async with slots.slot(job, cost):
                assert slots.in_flight <= limit
                await asyncio.sleep(0)
                done.append(number)

        tasks = [asyncio.create_task(read(i, job, cost)) for i, (job, cost, _) in enumerate(arrivals)]
        await asyncio.sleep(0)
        cancelled = {i for i, (_, _, fate) in enumerate(arrivals) if fate == "cancel" and tasks[i].cancel()}
        await asyncio.gather(*tasks, return_exceptions=True)
        assert set(done) | cancelled == set(range(len(arrivals)))
        assert (slots.in_flight, slots.waiting, len(slots._jobs)) == (0, 0, 0)

    run: Callable[..., None] = asyncio.run
    run(scenario())
