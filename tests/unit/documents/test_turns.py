import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from handler.documents.turns import Rank, Turns


async def test_the_page_nearest_to_its_end_goes_first() -> None:
    turns, order = Turns(1, ahead=0), list[str]()

    async def work(name: str, rank: Rank) -> None:
        async with turns.turn(rank):
            order.append(name)

    async with turns.turn(Rank.DRAW), turns.turn(Rank.OPEN):
        names = (("draw", Rank.DRAW), ("open", Rank.OPEN), ("cut", Rank.CUT), ("more", Rank.DRAW))
        tasks = [asyncio.create_task(work(name, rank)) for name, rank in names]
        await asyncio.sleep(0)
        assert order == []
    await asyncio.gather(*tasks)
    assert order == ["cut", "open", "draw", "more"]


async def test_documents_take_turns_and_a_new_one_goes_first() -> None:
    turns, order = Turns(1, ahead=0), list[str]()
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


async def test_a_process_is_kept_for_the_first_cut_and_none_idles_after_it() -> None:
    turns, begun = Turns(2, ahead=1), list[str]()
    done = asyncio.Event()

    async def draw(name: str) -> None:
        async with turns.turn(Rank.DRAW):
            begun.append(name)
            await done.wait()

    pages = [f"page {number}" for number in range(1, 6)]
    drawings = [asyncio.create_task(draw(page)) for page in pages]
    await asyncio.sleep(0)
    assert begun == pages[:1]
    async with turns.turn(Rank.CUT):
        await asyncio.sleep(0)
        assert begun == pages[:2], "both processes are busy, and one drawing waits for them"
    await asyncio.sleep(0)
    assert begun == pages[:3]
    done.set()
    await asyncio.gather(*drawings)
    assert begun == pages
    assert not turns._cutting, "idle again: the next page is a first one"


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(Rank), st.booleans()), max_size=30), st.integers(1, 4), st.integers(0, 3))
def test_every_place_comes_back(works: list[tuple[Rank, bool]], processes: int, ahead: int) -> None:
    async def scenario() -> None:
        turns, running = Turns(processes, ahead), Counter[Rank]()

        async def work(rank: Rank) -> None:
            async with turns.turn(rank):
                running[rank] += 1
                assert running.total() <= processes + ahead + 1
                assert running[Rank.DRAW] <= processes + ahead
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
        assert turns._running.total() == 0

    asyncio.run(scenario())
