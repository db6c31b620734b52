"""What is built in is what its hash says."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = [path for path in sorted((ROOT / "requirements").glob("*.txt")) if "==" in path.read_text()]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("lock", LOCKS, ids=[lock.name for lock in LOCKS])
def test_every_locked_package_has_a_hash(lock: Path) -> None:
    text = lock.read_text().replace("\\\n", " ")
    packages = [line for line in text.splitlines() if re.match(r"[A-Za-z0-9]", line)]
    assert packages
    for line in packages:
        assert re.match(r"[A-Za-z0-9._-]+(\[[\w,-]+\])?==\S+", line), line
        assert "--hash=sha256:" in line, line


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=[workflow.name for workflow in WORKFLOWS])
def test_every_action_is_pinned_by_commit(workflow: Path) -> None:
    text = workflow.read_text()
    for used in re.findall(r"uses:\s*(\S+)", text):
        assert used.startswith("./") or re.search(r"@[0-9a-f]{40}$", used), used
    assert re.search(r"^permissions:\s*(\{\}|$)", text, re.MULTILINE), "permissions must be stated at the top"
    assert "persist-credentials: false" in text or "actions/checkout" not in text


def test_the_base_image_has_a_version_and_its_digest_is_recorded() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    [base] = re.findall(r"^ARG BASE_IMAGE=(\S+)", dockerfile, re.MULTILINE)
    assert re.search(r":v\d+\.\d+\.\d+", base)
    assert 'base.digest="${BASE_DIGEST}"' in dockerfile
    assert "BASE_DIGEST" in (ROOT / "scripts" / "build-image").read_text()
