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


async def test_documents_take_turns_and_a_new_one_goes_first() -> None:
    turns, order = Turns(1), list[str]()
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
