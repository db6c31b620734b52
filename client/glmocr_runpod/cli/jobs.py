"""`submit`, `wait`, `result`, `cancel`, `status`: one step at a time."""

from pathlib import Path
from typing import Any

import click
import msgspec

from glmocr_runpod.cli.console import ERR, OUT, SHOWN_REFERENCE, Bar, Done, bars, complain, exit_of, record, table
from glmocr_runpod.cli.options import asking, client_for, options_from, reading, submitting
from glmocr_runpod.cli.parse import given
from glmocr_runpod.config import load
from glmocr_runpod.errors import Exit
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.overview import Overview, overviews

_REFERENCE = click.argument("reference")
_OUTPUT = click.option("-o", "--output", type=click.Path(path_type=Path), default=Path(), show_default="this directory")


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@reading
@submitting
def submit(file: str, as_json: bool, **options: Any) -> None:
    """Send FILE and print its reference; fetch the result later with wait or result."""
    with client_for(**options) as client, bars() as progress:
        name = "stdin" if file == "-" else None
        reference = client.submit(
            given(file), options_from(**options), name=name, observer=Bar(progress, Path(file).name)
        )
    _say({"reference": reference}, reference, as_json)


@click.command()
@_REFERENCE
@_OUTPUT
@asking
@click.pass_context
def wait(context: click.Context, /, reference: str, output: Path, as_json: bool, endpoint: str | None) -> None:
    """Wait for the document of REFERENCE (or a RunPod job id) and write its result."""
    with client_for(endpoint) as client, bars() as progress:
        bar = Bar(progress, reference[:SHOWN_REFERENCE])
        document = client.attach(reference, observer=bar)
        bar.end(str(document.status))
        done = Done(document.name, document, document.save(output))
    _show(done, as_json)
    context.exit(exit_of(done))


@click.command()
@_REFERENCE
@_OUTPUT
@asking
@click.pass_context
def result(context: click.Context, /, reference: str, output: Path, as_json: bool, endpoint: str | None) -> None:
    """Write the result of REFERENCE if it is there now; exit 1 while it is being read."""
    with client_for(endpoint) as client:
        document = client.result(reference)
    if document is None:
        ERR.print("still being read")
        context.exit(Exit.FAILED)
    done = Done(document.name, document, document.save(output))
    _show(done, as_json)
    context.exit(exit_of(done))


@click.command()
@_REFERENCE
@asking
def cancel(reference: str, as_json: bool, endpoint: str | None) -> None:
    """Stop the jobs of REFERENCE."""
    with client_for(endpoint) as client:
        for entry in client.cancel(reference):
            _say({"job_id": entry.job_id, "stage": entry.stage}, f"{entry.job_id} {entry.stage}", as_json)


@click.command()
@click.argument("reference", required=False)
@click.option("-n", "--last", type=click.IntRange(1), default=20, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout.")
def status(reference: str | None, last: int, as_json: bool) -> None:
    """What was sent and how far it is, from the state directory; asks nobody."""
    ledger = SqliteLedger(load().state_directory)
    found = [view for view in overviews(ledger) if reference is None or view.reference.startswith(reference)]
    ledger.close()
    for view in found[:last]:
        _say(msgspec.to_builtins(view), _line(view), as_json)


def _line(view: Overview) -> str:
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(view.stages.items())) or "planned"
    return f"{view.reference[:SHOWN_REFERENCE]}  {stages:24}  {view.name}"


def _show(done: Done, as_json: bool) -> None:
    if as_json:
        _say(record(done), "", as_json=True)
        return
    OUT.print(table([done]))
    for path in done.paths:
        OUT.print(str(path), markup=False)
    complain(done)


def _say(content: object, line: str, as_json: bool) -> None:
    OUT.print(msgspec.json.encode(content).decode() if as_json else line, markup=False)
