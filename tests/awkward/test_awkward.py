"""Every awkward file gets the ledger it must get, through the whole worker."""

from collections.abc import Iterator

import pytest

from handler.settings import Settings
from tests.awkward.case import Case, agrees, found
from tests.awkward.catalogue import all_cases
from tests.support.reading_rig import Rig, reading_rig
from tests.support.sighted_engine import sighted_engine

CASES = list(all_cases())


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with reading_rig(Settings(render_timeout_s=120), sighted_engine()) as ready:
        yield ready


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
async def test_the_ledger_is_the_expected_one(rig: Rig, case: Case) -> None:
    answer = await rig.ask(case.job())
    assert agrees(case, answer), f"{found(answer)} is not {case.expected}"


async def test_no_error_names_a_place_on_this_machine(rig: Rig) -> None:
    for case in CASES:
        if isinstance(case.expected, str):
            answer = await rig.ask(case.job())
            assert "/tmp" not in answer["error"]


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names) >= 60
