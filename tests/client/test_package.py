"""What the package pulls in when it is imported, and what it never does."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

CLIENT = Path(__file__).parents[2] / "client"
MODULES = sorted((CLIENT / "glmocr_runpod").rglob("*.py"))
EXTRAS = {"pypdfium2": "pdf", "boto3": "s3", "botocore": "s3", "aiohttp": "async"}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def test_importing_it_loads_neither_extras_nor_the_heavy_half() -> None:
    heavy = {*EXTRAS, "requests", "urllib3", "rich", "click", "pydantic", "numpy", "handler"}
    program = f"import sys, glmocr_runpod; print(sorted(set(sys.modules) & {heavy!r}))"
    ended = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(CLIENT)}, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "[]"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_it_imports_only_what_it_declares(path: Path) -> None:
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    declared = {name.partition(">")[0] for name in project["dependencies"]} | EXTRAS.keys() | {"glmocr_runpod"}
    foreign = imported(path) - set(sys.stdlib_module_names) - declared
    # urllib3 is requests' own, and the transport reaches below it.
    assert foreign <= ({"urllib3"} if path.stem == "transport" else set())


def test_one_place_each() -> None:
    assert [path.stem for path in MODULES if "subprocess" in imported(path)] == ["shrink"]
    assert [path.stem for path in MODULES if "os.environ" in path.read_text()] == ["config"]


def imported_of(stem: str) -> set[str]:
    return set().union(*(imported(path) for path in MODULES if path.stem == stem))


def test_modules_stay_small() -> None:
    assert max(len(path.read_text().splitlines()) for path in MODULES) < 300


def test_the_core_does_no_io() -> None:
    core = ("protocol", "schedule", "resume", "merge", "pages", "plan", "contract", "identity", "effects", "errors")
    forbidden = {
        "requests",
        "socket",
        "sqlite3",
        "time",
        "random",
        "threading",
        "asyncio",
        "pathlib",
        "os",
        "subprocess",
    }
    for stem in core:
        assert not imported_of(stem) & forbidden, stem
