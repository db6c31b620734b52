from pathlib import Path

import pytest

from handler.schema import ErrorCode, Reason
from handler.settings import Settings
from scripts import make_docs


@pytest.mark.parametrize("path", make_docs.pages(), ids=lambda path: path.name)
def test_the_page_is_what_the_code_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == make_docs.pages()[path], "run: make docs"


def test_every_code_reason_and_setting_has_a_meaning() -> None:
    api = make_docs.api_page()
    table = make_docs.settings_table()
    for value in (*ErrorCode, *Reason):
        (row,) = {line for line in api.splitlines() if line.startswith(f"| `{value.value}` |")}
        assert len(row.split("|")[-2].strip()) > 10, row
    for name in Settings.model_fields:
        assert f"| `{name.upper()}` |" in table
        assert Settings.model_fields[name].description, name


def test_a_page_keeps_what_stands_around_the_table() -> None:
    first, last = make_docs.SETTINGS_MARKS
    page = make_docs.operations_page(f"before\n{first}old\n{last}after\n")

    assert page == f"before\n{make_docs.settings_table()}after\n"
