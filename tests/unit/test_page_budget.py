import asyncio
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.page_budget import PageBudget


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_waits_until_bytes_are_free() -> None:
    budget = PageBudget(100)
    entered = asyncio.Event()

    async def second() -> None:
        async with budget.reserve("b", 60):
            entered.set()

    async with budget.reserve("a", 60):
        task = asyncio.create_task(second())
        await settle()
        assert not entered.is_set()
    await task
    assert entered.is_set()
    assert budget.used == 0


async def test_a_page_larger_than_the_limit_still_fits_alone() -> None:
    budget = PageBudget(10)
    async with budget.reserve("a", 500) as reservation:
        assert reservation.nbytes == 500


async def test_shrinking_lets_the_next_one_in() -> None:
    budget = PageBudget(100)
    async with budget.reserve("a", 90) as reservation:
        task = asyncio.create_task(_hold(budget, "a", 50))
        await settle()
        assert not task.done()
        reservation.resize(10)
        await task


async def _hold(budget: PageBudget, document: str, nbytes: int) -> None:
    async with budget.reserve(document, nbytes):
        await asyncio.sleep(0)


async def test_the_document_that_holds_least_goes_first() -> None:
    budget = PageBudget(100)
    order: list[str] = []

    async def page(document: str) -> None:
        async with budget.reserve(document, 50):
            order.append(document)
            await asyncio.sleep(0)

    async with AsyncExitStack() as held:
        first = await held.enter_async_context(budget.reserve("long", 50))
        await held.enter_async_context(budget.reserve("long", 50))
        tasks = [asyncio.create_task(page(d)) for d in ("long", "long", "long", "short")]
        await settle()
        first.resize(0)
        await settle()
    await asyncio.gather(*tasks)
    assert order[0] == "short"


async def test_a_cancelled_waiter_leaves_nothing_behind() -> None:
    budget = PageBudget(100)
    async with budget.reserve("a", 100):
        task = asyncio.create_task(_hold(budget, "b", 10))
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert budget.used == 0
    async with asyncio.timeout(1), budget.reserve("c", 100):
        pass


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 120)), max_size=25))
async def test_everyone_gets_in_and_the_limit_holds(pages: list[tuple[str, int]]) -> None:
    budget = PageBudget(100)

    async def page(document: str, nbytes: int) -> None:
        async with budget.reserve(document, nbytes):
            assert budget.used <= 100 or budget.used == nbytes
            await asyncio.sleep(0)

    async with asyncio.timeout(10):
        await asyncio.gather(*(page(*p) for p in pages))
    assert budget.used == 0
