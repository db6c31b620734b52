"""What people see: a progress bar while jobs run, a table when they are done."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from glmocr_runpod.document import Document
from glmocr_runpod.errors import ClientError
from glmocr_runpod.events import Event, Finished, Noted, Submitted, Waiting, Watched

ERR = Console(stderr=True, highlight=False)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one document."""

    name: str
    document: Document | None = None
    paths: Sequence[Path] = ()
    error: ClientError | None = None


def bars() -> Progress:
    """The progress display, on stderr so that stdout can be piped."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[pages]}"),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
        console=ERR,
    )


class Bar:
    """One document's line. An observer."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task: TaskID = progress.add_task(name, total=None, pages="", note="preparing")

    def __call__(self, event: Event) -> None:
        """Show what happened."""
        match event:
            case Submitted(_, job_id):
                self._show(f"submitted {job_id}")
            case Watched(_, state, _, progress) if progress is not None:
                engine = "" if progress.running is None else f", engine {progress.running}+{progress.queued or 0}"
                pages = f"{progress.pages_done}/{progress.pages_total} pages"
                self._progress.update(
                    self._task,
                    completed=progress.pages_done,
                    total=progress.pages_total,
                    pages=pages,
                    note=f"{state.lower()}, {progress.regions_done} regions{engine}",
                )
            case Watched(_, state):
                self._show(state.lower().replace("_", " "))
            case Waiting(_, message, seconds):
                self._show(f"waiting {seconds:.0f} s: {message[:80]}")
            case Noted(step, detail, loud):
                self._show(f"{step} {detail}")
                if loud:
                    self._progress.console.print(f"[bold yellow]warning[/] {step}: {detail}")
            case Finished():
                self._show("stored")

    def end(self, note: str) -> None:
        """Stop the line's clock."""
        task = self._progress.tasks[self._task]
        total = task.total or 1
        self._progress.update(self._task, total=total, completed=total, note=note)

    def _show(self, note: str) -> None:
        self._progress.update(self._task, note=note)


def table(results: Sequence[Done]) -> Table:
    """Pages, regions, status and seconds of each document."""
    view = Table("document", "pages", "regions", "status", "seconds", box=None, pad_edge=False)
    for result in results:
        view.add_row(result.name, *_figures(result))
    return view


def _figures(result: Done) -> tuple[str, str, str, str]:
    if result.document is None:
        return "-", "-", f"error: {result.error.code if result.error else 'unknown'}", "-"
    counts = result.document.output.counts
    seconds = f"{result.document.seconds:.1f}"
    return str(counts.pages.requested), str(counts.regions.found), str(result.document.status), seconds
