"""The golden files, as both sides read them."""

import json
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent / "golden"


def golden_text(name: str) -> str:
    return (GOLDEN / f"{name}.json").read_text()


def golden(name: str) -> Any:
    return json.loads(golden_text(name))
