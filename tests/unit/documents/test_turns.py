import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from handler.documents.turns import Rank, Turns


async def test_the_page_nearest_to_its_end_goes_first() -> None:
    turns, order = Turns(1, drawings=1), list[str]()

    async def work(name: str, rank: Rank) -> None:
        async with turns.turn(rank):
            order.append(name)

    async with turns.turn(Rank.DRAW):
        names = (("draw", Rank.DRAW), ("open", Rank.OPEN), ("cut", Rank.CUT), ("more", Rank.DRAW))
        tasks = [asyncio.create_task(work(name, rank)) for name, rank in names]
        await asyncio.sleep(0)
        assert order == []
    await asyncio.gather(*tasks)
    assert order == ["cut", "open", "draw", "more"]


async def test_documents_take_turns_and_a_new_one_goes_first() -> None:
    turns, order = Turns(1, drawings=1), list[str]()
    late: list[asyncio.Task[None]] = []

    async def draw(page: str) -> None:
        async with turns.turn(Rank.DRAW, owner=page[0]):
            order.append(page)
            if page == "b2":
                late.extend(asyncio.create_task(draw(new)) for new in ("b3", "c1", "c2"))
                await asyncio.sleep(0)

    async with turns.turn(Rank.CUT):
        tasks = [asyncio.create_task(draw(page)) for page in ("a1", "a2", "a3", "a4", "b1", "b2")]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    await asyncio.gather(*late)
    assert order == ["a1", "b1", "a2", "b2", "c1", "c2", "a3", "b3", "a4"]


async def test_no_drawing_is_handed_over_before_a_process_is_free_for_it() -> None:
    turns, order = Turns(2, drawings=1), list[str]()

    async def work(name: str, rank: Rank) -> None:
        async with turns.turn(rank):
            order.append(name)

    async with turns.turn(Rank.DRAW):
        waiting = asyncio.create_task(work("draw", Rank.DRAW))
        await asyncio.sleep(0)
        await work("cut", Rank.CUT)
    await waiting
    assert order == ["cut", "draw"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Rank), st.booleans()), max_size=30), st.integers(1, 4), st.integers(1, 4))
def test_every_place_comes_back(works: list[tuple[Rank, bool]], places: int, drawings: int) -> None:
    async def scenario() -> None:
        turns, running = Turns(places, drawings), Counter[Rank]()

        async def work(rank: Rank) -> None:
            async with turns.turn(rank):
                running[rank] += 1
                assert running.total() <= places
                assert running[Rank.DRAW] <= drawings
                try:
                    await asyncio.sleep(0)
                finally:
                    running[rank] -= 1

        tasks = [asyncio.create_task(work(rank)) for rank, _ in works]
        await asyncio.sleep(0)
        for task, (_, unwanted) in zip(tasks, works, strict=True):
            if unwanted:
                task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(answer is None or isinstance(answer, asyncio.CancelledError) for answer in answers)
        assert (turns._free, turns._free_to_draw) == (places, drawings)

    asyncio.run(scenario())
