"""The rules that keep the parts apart (docs/architecture.md)."""

import ast
import functools
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("handler", "client/glmocr_runpod", "emulator")
LIMIT = 300

ALLOWED_IMPORTERS = {
    "runpod": ("handler/serving.py", "handler/sources/"),
    "glmocr": ("handler/layout/", "handler/patches/"),
    "torch": ("handler/layout/", "handler/patches/", "handler/engine/sglang_launcher.py"),
    "sglang": ("handler/engine/sglang_launcher.py", "handler/patches/"),
    "subprocess": (
        "handler/engine/",
        "handler/models/download.py",
        "handler/fitness.py",
        "client/glmocr_runpod/shrink",
    ),
    "boto3": ("handler/bucket.py", "client/glmocr_runpod/"),
    "rapidocr": ("handler/engine/",),
    "rapid_layout": ("handler/layout/cdla.py",),
    "pymupdf": ("handler/documents/",),
    "pypdfium2": ("handler/documents/", "client/glmocr_runpod/"),
}
"""Outside package -> the only places that may import it, as path prefixes."""


@functools.cache
def modules() -> list[Path]:
    return sorted(path for folder in SHIPPED for path in (ROOT / folder).rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@functools.cache
def imports(path: Path, *, at_runtime: bool = False) -> tuple[str, ...]:
    """Dotted names of the modules that `path` imports; `at_runtime` leaves out what only type checkers read."""
    tree = tree_of(path)
    unread = {
        id(inner)
        for node in ast.walk(tree)
        if at_runtime and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    return tuple(name for node in ast.walk(tree) if id(node) not in unread for name in imported(node))


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", ALLOWED_IMPORTERS)
def test_outside_packages_are_imported_in_one_place(package: str) -> None:
    importers = {name_of(p) for p in modules() if any(i.split(".")[0] == package for i in imports(p))}
    astray = {importer for importer in importers if not importer.startswith(ALLOWED_IMPORTERS[package])}
    assert astray == set()


@pytest.mark.parametrize(
    ("package", "forbidden"),
    [("handler", "glmocr_runpod"), ("handler", "emulator"), ("client", "handler"), ("client", "emulator"),
     ("emulator", "handler"), ("emulator", "glmocr_runpod")],
)  # fmt: skip
def test_worker_client_and_emulator_share_no_code(package: str, forbidden: str) -> None:
    mine = [p for p in modules() if name_of(p).startswith(package)]
    assert mine
    assert [name_of(p) for p in mine if any(i.split(".")[0] == forbidden for i in imports(p))] == []


def test_only_settings_reads_the_environment() -> None:
    readers = {
        name_of(path)
        for path in modules()
        if name_of(path).startswith("handler")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv", "environb")
    }
    runs_inside_sglang = {"handler/engine/sglang_launcher.py", "handler/patches/torch_rendezvous.py"}
    assert readers <= {"handler/settings.py", *runs_inside_sglang}


def test_one_broad_except_that_does_not_raise_again() -> None:
    broad = [
        name_of(path)
        for path in modules()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler)
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
        and (node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")))
    ]
    assert broad == ["handler/worker.py"]


def test_no_global_statement() -> None:
    guilty = [name_of(p) for p in modules() if any(isinstance(n, ast.Global) for n in ast.walk(tree_of(p)))]
    assert guilty == []


def test_modules_stay_readable() -> None:
    long = {name_of(p): n for p in modules() if (n := len(p.read_text("utf-8").splitlines())) > LIMIT}
    long.pop("handler/schema.py", None)  # one list of the wire's models reads better whole
    assert long == {}


def test_no_cycle() -> None:
    known = {name_of(p).removesuffix(".py").removesuffix("/__init__").replace("/", "."): p for p in modules()}
    graph = {}
    for name, path in known.items():
        targets = set()
        for dotted in imports(path, at_runtime=True):
            target = dotted if dotted in known else dotted.rpartition(".")[0]
            if target in known and target != name:
                targets.add(target)
        graph[name] = targets
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")
