"""What must end the boot ends it, with exit code 1 and one line that says what to do."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.engine.conftest import BOOT_DEADLINE_S, extra_args

Worker = Callable[..., Any]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"SGLANG_EXTRA_ARGS": extra_args("--no-such-flag")}, r"exit code 2 .*unrecognized arguments: --no-such-flag"),
        (
            {"SGLANG_EXTRA_ARGS": extra_args("--max-total-tokens 4096")},
            r"gate KV pool: the KV pool holds 4096 tokens, le",
        ),
        ({"LAYOUT_MODEL": "layout_unnamed"}, r"names labels that are not PP-DocLayoutV3's: LABEL_0"),
    ],
    ids=["wrong flag", "pool smaller than context", "layout without labels"],
)
async def test_a_boot_that_must_not_succeed(
    worker: Worker, environment: dict[str, str], settings: dict[str, str], said: str
) -> None:
    if "LAYOUT_MODEL" in settings:
        folder = environment["LAYOUT_MODEL_PATH"].removesuffix("layout") + settings["LAYOUT_MODEL"]
        settings = {"LAYOUT_MODEL_PATH": folder}
    async with worker(**settings) as real:
        assert await real.exit_code(BOOT_DEADLINE_S) == 1
        last = [line for line in real.log.read_text().splitlines() if "cannot start" in line]
        assert len(last) == 1
        assert re.search(said, last[0]), last[0]
