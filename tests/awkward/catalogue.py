"""All cases."""

from collections.abc import Iterator

from tests.awkward import containers, pdfs, pictures
from tests.awkward.case import Case


def all_cases() -> Iterator[Case]:
    """In the order of the table."""
    yield from pdfs.cases()
    yield from pictures.cases()
    yield from containers.cases()
