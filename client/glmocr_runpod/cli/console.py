"""What people see: a progress bar while jobs run, a table when they are done."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from glmocr_runpod.contract import DocumentStatus
from glmocr_runpod.document import Document
from glmocr_runpod.errors import ClientError, Exit
from glmocr_runpod.events import Event, Finished, Noted, Submitted, Waiting, Watched

OUT = Console(highlight=False, soft_wrap=True)
ERR = Console(stderr=True, highlight=False, soft_wrap=True)
NOTE_WIDTH = 80
SHOWN_REFERENCE = 12
"""Characters of a reference, which are enough to find it again."""
LONG_QUEUE_S = 180.0
"""A worker starts in one to two minutes; a longer wait has another reason."""


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
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[pages]}"),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        console=ERR,
    )


class Bar:
    """One document's line, whatever number of jobs it has. An observer."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._pages: dict[str, tuple[int, int]] = {}
        self._task: TaskID = progress.add_task(name, total=None, pages="", note="preparing")

    def __call__(self, event: Event) -> None:
        """Show what happened."""
        match event:
            case Submitted(_, job_id):
                self._show(f"submitted {job_id}")
            case Watched(key, state, _, progress) if progress is not None:
                self._pages[key] = (progress.pages_done, progress.pages_total)
                engine = "" if progress.running is None else f", engine {progress.running}+{progress.queued or 0}"
                self._show(f"{state.lower()}, {progress.regions_done} regions{engine}")
            case Watched(_, "IN_QUEUE", elapsed) if elapsed > LONG_QUEUE_S:
                self._show(f"in queue for {elapsed:.0f} s; `glmocr-runpod doctor` shows the workers")
            case Watched(_, state):
                self._show(state.lower().replace("_", " "))
            case Waiting(_, message, seconds):
                self._show(f"waiting {seconds:.0f} s: {message}")
            case Noted(step, detail, loud):
                self._show(f"{step} {detail}")
                if loud:
                    self._progress.console.print(f"warning: {step}: {detail}", markup=False, style="bold yellow")
            case Finished(key):
                done, total = self._pages.get(key, (0, 0))
                self._pages[key] = (max(done, total), total)
                self._show("stored")

    def end(self, note: str) -> None:
        """Stop the line's clock."""
        total = self._progress.tasks[self._task].total or 1
        self._progress.update(self._task, total=total, completed=total, note=note)

    def _show(self, note: str) -> None:
        done, total = (sum(figures) for figures in zip(*self._pages.values(), strict=True)) if self._pages else (0, 0)
        self._progress.update(
            self._task,
            completed=done,
            total=total or None,
            pages=f"{done}/{total} pages" if total else "",
            note=note[:NOTE_WIDTH],
        )


def table(results: Sequence[Done]) -> Table:
    """Pages, regions, status and seconds of each document."""
    view = Table("document", "pages", "regions", "status", "seconds", box=None, pad_edge=False)
    for result in results:
        view.add_row(result.name, *_figures(result))
    return view


def exit_of(result: Done) -> Exit:
    """The exit code of one document."""
    if result.error is not None:
        return result.error.exit
    complete = result.document is not None and result.document.status is DocumentStatus.COMPLETE
    return Exit.OK if complete else Exit.DEGRADED


def record(result: Done) -> dict[str, object]:
    """One document as JSON."""
    if result.document is None:
        return {"name": result.name, "error": result.error.report() if result.error else None}
    return {
        "name": result.name,
        "status": result.document.status,
        "counts": result.document.output.counts,
        "degraded": result.document.output.degraded.count,
        "transport": [dict(step) for step in result.document.transport],
        "seconds": round(result.document.seconds, 3),
        "execution_ms": result.document.execution_ms,
        "paths": [str(path) for path in result.paths],
        "absent": [artifact.name for artifact in result.document.absent],
    }


def complain(result: Done) -> None:
    """Say on stderr what is wrong with one document, if anything is."""
    if result.document is not None and result.document.absent:
        names = ", ".join(artifact.name for artifact in result.document.absent)
        ERR.print(f"{result.name}: files that could not be fetched; is the storage configured? {names}", markup=False)
    if result.error is not None:
        reference = f" [{result.error.reference[:SHOWN_REFERENCE]}]" if result.error.reference else ""
        ERR.print(f"{result.name}: {result.error.word}: {result.error.message}{reference}", markup=False)


def _figures(result: Done) -> tuple[str, str, str, str]:
    if result.document is None:
        return "-", "-", f"error: {result.error.word if result.error else 'unknown'}", "-"
    counts = result.document.output.counts
    seconds = f"{result.document.seconds:.1f}"
    return str(counts.pages.requested), str(counts.regions.found), str(result.document.status), seconds
