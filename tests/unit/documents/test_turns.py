import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from handler.documents.turns import Rank, Turns


async def test_the_page_nearest_to_its_end_goes_first() -> None:
    turns, order = Turns(1), list[str]()

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


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Rank), st.booleans()), max_size=30), st.integers(1, 4))
def test_every_place_comes_back(works: list[tuple[Rank, bool]], places: int) -> None:
    async def scenario() -> None:
        turns, running = Turns(places), 0

        async def work(rank: Rank) -> None:
            nonlocal running
            async with turns.turn(rank):
                running += 1
                assert running <= places
                await asyncio.sleep(0)
                running -= 1

        tasks = [asyncio.create_task(work(rank)) for rank, _ in works]
        await asyncio.sleep(0)
        for task, (_, unwanted) in list(zip(tasks, works, strict=True))[places:]:
            if unwanted:
                task.cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(answer is None or isinstance(answer, asyncio.CancelledError) for answer in answers)
        assert turns._free == places

    asyncio.run(scenario())
