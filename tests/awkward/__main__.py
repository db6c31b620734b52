"""Print every case, what was expected and what came."""

import asyncio

from handler.settings import Settings
from tests.awkward.case import Case, agrees, found
from tests.awkward.catalogue import all_cases
from tests.support.reading_rig import reading_rig
from tests.support.sighted_engine import sighted_engine


async def run(cases: list[Case]) -> int:
    """Run the cases one after another; returns how many differ."""
    wrong = 0
    with reading_rig(Settings(max_document_bytes=200_000_000), sighted_engine()) as rig:
        for case in cases:
            answer = await rig.ask(case.job())
            good = agrees(case, answer)
            wrong += not good
            actual, expected = (_shown(value) for value in (found(answer), case.expected))
            print(f"{'ok ' if good else 'BAD'}  {case.name:<44} {actual}" + ("" if good else f"   expected {expected}"))
    return wrong


def _shown(value: tuple[str, ...] | str) -> str:
    return value if isinstance(value, str) else ", ".join(value)


if __name__ == "__main__":
    catalogue = list(all_cases())
    different = asyncio.run(run(catalogue))
    print(f"\n{len(catalogue)} files, {different} not as expected")
    raise SystemExit(bool(different))
