"""docs/client.md: its tables are complete, and its ledger works."""

import re
from pathlib import Path
from typing import Any

import pytest
from glmocr_runpod import Client, Config
from glmocr_runpod.errors import Exit

from tests.client import scans
from tests.client.reading import Reading
from tests.client.rig import Rig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "client.md").read_text()


def test_every_setting_is_there() -> None:
    missing = {name.upper() for name in Config.__struct_fields__ if f"`{name.upper()}`" not in PAGE}
    assert missing == set()


def test_every_exit_code_is_there() -> None:
    table = PAGE[PAGE.index("| exit code |") :]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.M)] == list(Exit)


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.S)


def test_the_examples_run_as_they_are_written(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in rig.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("contract.pdf", "long.pdf", "examples/agreement.pdf"), 1):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(scans.scan(30, [number]))
    with rig.worker(Reading()):
        for code in (blocks(PAGE)[0], *blocks((ROOT / "README.md").read_text())):
            exec(code, {"paths": [Path("contract.pdf"), Path("long.pdf")]})
    assert sorted(path.name for path in Path("out").glob("*.md")) == ["contract.md", "long.md"]
    assert len(rig.jobs()) == 4  # contract.pdf with options and without, and each other once


class FakeRedis:
    """As much of Redis as the example uses."""

    def __init__(self) -> None:
        self.hashes: dict[str, dict[bytes, bytes]] = {}
        self.values: dict[str, Any] = {}

    def hget(self, name: str, key: str) -> bytes | None:
        return self.hashes.get(name, {}).get(key.encode())

    def hset(self, name: str, key: str, value: bytes) -> None:
        self.hashes.setdefault(name, {})[key.encode()] = value

    def hvals(self, name: str) -> list[bytes]:
        return list(self.hashes.get(name, {}).values())

    def hgetall(self, name: str) -> dict[bytes, bytes]:
        return self.hashes.get(name, {})

    def set(self, name: str, value: Any, nx: bool = False, px: int | None = None) -> bool | None:
        if nx and name in self.values:
            return None
        self.values[name] = value
        return True

    def get(self, name: str) -> Any:
        return self.values.get(name)

    def delete(self, name: str) -> None:
        self.values.pop(name, None)

    def eval(self, script: str, keys: int, name: str, token: str, *rest: Any) -> None:
        if self.values.get(name) == token and "'del'" in script:
            del self.values[name]

    def close(self) -> None: ...


def test_the_example_ledger_works(rig: Rig) -> None:
    block = next(code for code in blocks(PAGE) if "class RedisLedger" in code)
    space: dict[str, Any] = {}
    exec(block, space)
    redis = FakeRedis()
    for _ in range(2):
        with Client(config=rig.config, ledger=space["RedisLedger"](redis)) as client, rig.worker():
            reference = client.submit(b"%PDF-1.7", name="a.pdf")
            assert client.attach(reference).name == "a.pdf"
    assert len(rig.jobs()) == 1
    assert not [name for name in redis.values if "lease" in name]
