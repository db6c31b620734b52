"""`glmocr-runpod batch`: a directory of documents, resumable, with a report."""

import threading
import time
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from glmocr_runpod.batch import BatchItem
from glmocr_runpod.cli.console import ERR, OUT
from glmocr_runpod.cli.options import client_for, options_from, reading, submitting
from glmocr_runpod.errors import ConfigError, Exit
from glmocr_runpod.events import Event, Observer, Watched
from glmocr_runpod.report import write_report

SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".gif", ".bmp", ".zip", ".gz"})
HOUR_MS = 3_600_000


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Directory for the results.")
@click.option("-j", "--concurrency", type=click.IntRange(1, 256), default=8, show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Also write a report, .csv or .html.")
@click.option("--recursive/--flat", default=True, show_default=True)
@reading
@submitting
@click.pass_context
def batch(
    context: click.Context,
    /,
    directory: Path,
    output: Path,
    concurrency: int,
    report: Path | None,
    recursive: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Read every document in DIRECTORY. Run again to go on: what is settled is neither sent nor paid again."""
    files = documents_in(directory, recursive=recursive)
    if not files:
        raise ConfigError(f"{directory} holds no document ({', '.join(sorted(SUFFIXES))})")
    with client_for(**given) as client, _display() as display:
        meter = Meter(display, len(files), client.config.glmocr_gpu_price_per_hour)
        items = client.parse_many(
            files,
            output,
            options_from(**given),
            concurrency=concurrency,
            observe=meter.observe,
            done=meter.settle,
        )
    if report is not None:
        write_report(items, report)
    _summary(items, as_json)
    context.exit(exit_of(items))


def documents_in(directory: Path, *, recursive: bool) -> list[Path]:
    """Files whose names say they may be documents, in a stable order."""
    found = directory.rglob("*") if recursive else directory.glob("*")
    return sorted(path for path in found if path.suffix.lower() in SUFFIXES and path.is_file())


def exit_of(items: list[BatchItem]) -> Exit:
    """Worst first: a file without a result, then one that is not complete."""
    if any(not item.ok for item in items):
        return Exit.FAILED
    return Exit.DEGRADED if any(item.status != "complete" for item in items) else Exit.OK


class Meter:
    """Files, pages, throughput and cost so far."""

    def __init__(self, display: Progress, files: int, price_per_hour: float) -> None:
        self._display = display
        self._task: TaskID = display.add_task("files", total=files, figures="")
        self._price = price_per_hour
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._running: dict[str, int] = {}
        self._pages = self._execution_ms = self._failed = 0

    def observe(self, path: str) -> Observer:
        """An observer for one file."""

        def observer(event: Event) -> None:
            if isinstance(event, Watched) and event.progress is not None:
                with self._lock:
                    self._running[path] = event.progress.pages_done
                self._show(0)

        return observer

    def settle(self, item: BatchItem) -> None:
        """One file more."""
        with self._lock:
            self._running.pop(item.path, None)
            self._failed += not item.ok
            if not item.reused:
                self._pages += item.counts.pages.requested
                self._execution_ms += item.execution_ms
        self._show(1)
        if not item.ok and not item.reused:
            self._display.console.print(f"{item.path}: {item.code}: {item.message}", markup=False)

    def _show(self, files: int) -> None:
        with self._lock:
            pages = self._pages + sum(self._running.values())
            minutes = (time.monotonic() - self._begun) / 60
            figures = f"{pages} pages, {pages / max(minutes, 0.01):.0f}/min, {cost(self._execution_ms, self._price)}"
            if self._failed:
                figures += f", {self._failed} failed"
        self._display.update(self._task, advance=files, figures=figures)


def cost(execution_ms: int, price_per_hour: float) -> str:
    """How long the jobs ran, and what that costs at most: a worker that reads several at once is paid once."""
    seconds = f"{execution_ms / 1000:.0f} s of jobs"
    return f"{seconds}, at most {execution_ms / HOUR_MS * price_per_hour:.2f}" if price_per_hour else seconds


def _display() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}", markup=False),
        TimeElapsedColumn(),
        console=ERR,
    )


def _summary(items: list[BatchItem], as_json: bool) -> None:
    if as_json:
        for item in items:
            OUT.print(msgspec.json.encode(item).decode(), markup=False)
        return
    done = [item for item in items if item.ok]
    degraded = sum(item.status != "complete" or item.degraded > 0 for item in done)
    pages = sum(item.counts.pages.requested for item in done)
    failed = len(items) - len(done)
    OUT.print(f"{len(done)} of {len(items)} documents, {pages} pages, {degraded} degraded, {failed} failed")
