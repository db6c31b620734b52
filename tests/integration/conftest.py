from collections.abc import Iterator

import pytest

from tests.support.stack import Stack, running

MAX_PAGES = 3
MAX_DOCUMENT_BYTES = 600_000


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One worker for all tests of a session: starting it takes longer than most of them."""
    limits = {"MAX_PAGES": str(MAX_PAGES), "MAX_DOCUMENT_BYTES": str(MAX_DOCUMENT_BYTES)}
    with running(tmp_path_factory.mktemp("stack"), **limits) as stack:
        yield stack
