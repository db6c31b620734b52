"""`docs/security.md` names a test beside each threat; every test it names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


def test_every_threat_has_a_test_and_every_test_exists() -> None:
    text = (ROOT / "docs" / "security.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| Threat", "| ---"))]
    assert len(rows) > 30
    for row in rows:
        named = NAMED.findall(row)
        assert named, f"no test beside: {row}"
        for path, name in named:
            assert (ROOT / path).is_file(), path
            assert not name or f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
