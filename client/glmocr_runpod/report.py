"""A batch's outcome as a table for people: CSV or HTML, by the file's name."""

import csv
import io
from collections.abc import Sequence
from html import escape
from pathlib import Path

from glmocr_runpod.batch import BatchItem
from glmocr_runpod.disk import write_atomically, writing
from glmocr_runpod.errors import ConfigError

COLUMNS = ("file", "status", "pages", "failed pages", "regions", "degraded", "seconds", "job s", "code", "message")
_STYLE = (
    "body{font:14px sans-serif}table{border-collapse:collapse}td,th{padding:.3em .8em;text-align:left;"
    "border-bottom:1px solid #ddd}.error td{background:#fdd}.partial td{background:#ffd}"
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_report(items: Sequence[BatchItem], path: Path) -> None:
    """Write `path`, failures first. Raises `ConfigError` for a name that is neither .csv nor .html."""
    writers = {".csv": _csv, ".html": _html}
    if path.suffix.lower() not in writers:
        raise ConfigError(f"{path}: a report is .csv or .html")
    ordered = sorted(items, key=lambda item: (item.ok, item.status == "complete", item.path))
    with writing(path):
        write_atomically(path, writers[path.suffix.lower()](ordered).encode())


def _row(item: BatchItem) -> tuple[str, ...]:
    counts = item.counts
    figures = (counts.pages.requested, counts.pages.failed, counts.regions.found, item.degraded)
    return (
        item.path,
        item.status,
        *(str(figure) for figure in figures),
        f"{item.seconds:.1f}",
        f"{item.execution_ms / 1000:.1f}",
        item.code or "",
        item.message or "",
    )


def _csv(items: Sequence[BatchItem]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows([_inert(cell) for cell in _row(item)] for item in items)
    return text.getvalue()


def _inert(cell: str) -> str:
    """A spreadsheet runs what begins like a formula; file names are not ours."""
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


def _html(items: Sequence[BatchItem]) -> str:
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    rows = "\n".join(
        f'<tr class="{escape(item.status)}">{"".join(f"<td>{escape(cell)}</td>" for cell in _row(item))}</tr>'
        for item in items
    )
    return (
        f'<!doctype html><meta charset="utf-8"><title>GLM-OCR batch</title><style>{_STYLE}</style>\n'
        f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>\n"
    )
