from pathlib import Path

import pytest

from handler.settings import Settings
from scripts import make_docs


@pytest.mark.parametrize("path", make_docs.pages(), ids=lambda path: path.name)
def test_the_page_is_what_the_code_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == make_docs.pages()[path], "run: make docs"


def test_every_key_value_and_setting_has_a_meaning() -> None:
    lines = [*make_docs.api_page().splitlines(), *make_docs.settings_table().splitlines()]
    rows = [line for line in lines if line.startswith("| `")]
    assert len(rows) > 200
    for row in rows:
        assert len(row.split(" | ")[-1].strip("| ")) > 3, row
    for name in Settings.model_fields:
        assert f"| `{name.upper()}` |" in make_docs.settings_table()


def test_a_page_keeps_what_stands_around_the_table() -> None:
    first, last = make_docs.SETTINGS_MARKS
    page = make_docs.operations_page(f"before\n{first}old\n{last}after\n")

    assert page == f"before\n{make_docs.settings_table()}after\n"
