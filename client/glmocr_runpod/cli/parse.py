"""`glmocr-runpod parse`: documents in, Markdown and JSON out."""

from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.progress import Progress

from glmocr_runpod.cli.console import ERR, Bar, Done, bars, table
from glmocr_runpod.client import Client
from glmocr_runpod.contract import DocumentStatus
from glmocr_runpod.errors import ClientError, Exit


@click.command()
@click.argument("files", nargs=-1, required=True)
@click.option("-o", "--output", "directory", type=click.Path(path_type=Path), default=Path(), show_default="here")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per document instead of the table.")
@click.pass_context
def parse(context: click.Context, files: tuple[str, ...], directory: Path, as_json: bool) -> None:
    """Read FILES and write NAME.md and NAME.json for each."""
    with Client() as client, bars() as progress:
        results = [_one(client, progress, file, directory) for file in files]
    _show(results, as_json)
    context.exit(max(_exit(result) for result in results))


def _one(client: Client, progress: Progress, file: str, directory: Path) -> Done:
    bar = Bar(progress, Path(file).name)
    try:
        document = client.parse(file, observer=bar)
        bar.end(str(document.status))
        return Done(document.name, document, document.save(directory))
    except ClientError as error:
        bar.end(error.code)
        return Done(file, error=error)


def _exit(result: Done) -> Exit:
    if result.error is not None:
        return result.error.exit
    complete = result.document is not None and result.document.status is DocumentStatus.COMPLETE
    return Exit.OK if complete else Exit.DEGRADED


def _show(results: list[Done], as_json: bool) -> None:
    out = Console(highlight=False, soft_wrap=True)
    if as_json:
        for result in results:
            out.print(msgspec.json.encode(_record(result)).decode(), markup=False)
        return
    out.print(table(results))
    for result in results:
        for path in result.paths:
            out.print(str(path), markup=False)
        if result.error is not None:
            ERR.print(f"{result.name}: {result.error.code}: {result.error.message}", markup=False)


def _record(result: Done) -> dict[str, object]:
    if result.document is None:
        return {"name": result.name, "error": result.error.report() if result.error else None}
    return {
        "name": result.name,
        "status": result.document.status,
        "counts": result.document.output.counts,
        "seconds": round(result.document.seconds, 3),
        "paths": [str(path) for path in result.paths],
    }
