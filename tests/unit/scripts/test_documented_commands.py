"""What the documents tell people to type exists, with the options they are told to give."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
SCRIPT = re.compile(r"\bscripts/([a-z][\w-]*)(?![\w.-]*\.py)\b(.*)")


def commands(document: Path) -> list[tuple[str, str]]:
    """Scripts named in a document, and what stands behind each on its line, continued ones joined."""
    text = re.sub(r"\\\n\s*", " ", document.read_text(encoding="utf-8"))
    return [found for line in text.splitlines() for found in SCRIPT.findall(line)]


def source(script: str) -> str:
    """The text of the module behind a script, or of the script itself."""
    module = ROOT / "scripts" / f"{script.replace('-', '_')}.py"
    return (module if module.exists() else ROOT / "scripts" / script).read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_script_can_be_run_and_knows_its_options(document: Path) -> None:
    for script, behind in commands(document):
        path = ROOT / "scripts" / script
        assert path.stat().st_mode & 0o111, f"{document.name}: {path}"
        told = re.split(r"[`|#;]|  ", behind)[0]
        for option in re.findall(r"(?<=\s)--[a-z][\w-]*", told):
            assert option in source(script) or "$@" in source(script), f"{document.name}: scripts/{script} {option}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_target_is_in_the_makefile(document: Path) -> None:
    told = re.findall(r"(?:`|^ *|\$ )make ([a-z-]+)", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert set(told) <= TARGETS
