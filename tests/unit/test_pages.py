import asyncio
import gc
from typing import Any

import pytest

from handler.errors import EngineUnavailable
from handler.pages import _settled
from handler.recognition.reading import Reading


async def test_an_engine_that_is_gone_fails_all_regions_at_once_and_none_unheard() -> None:
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unheard.append(context))

    async def read() -> Reading:
        raise EngineUnavailable("the engine is gone")

    with pytest.raises(EngineUnavailable):
        await _settled([read() for _ in range(4)])
    gc.collect()
    assert unheard == []
