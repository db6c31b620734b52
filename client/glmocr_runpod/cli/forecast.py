"""`glmocr-runpod plan`: what parse would do, without doing it."""

from pathlib import Path
from typing import Any

import click
import msgspec
from rich.table import Table

from glmocr_runpod.cli.console import ERR, OUT
from glmocr_runpod.cli.options import client_for, options_from, reading, submitting
from glmocr_runpod.errors import ClientError, Exit
from glmocr_runpod.forecast import Forecast


@click.command(name="plan")
@click.argument("files", nargs=-1, required=True)
@reading
@submitting
@click.pass_context
def command(context: click.Context, /, files: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Say what parse would do with FILES: pages, jobs, how they travel, and what is known of them. Sends nothing."""
    options = options_from(**given)
    view = Table("document", "pages", "jobs", "to send", "undecided", "carried", "known", box=None, pad_edge=False)
    worst = Exit.OK
    to_send = 0
    with client_for(**given) as client:
        for file in files:
            try:
                seen = client.plan(file, options)
            except ClientError as error:
                worst = max(worst, error.exit)
                ERR.print(f"{Path(file).name}: {error.word}: {error.message}", markup=False)
                continue
            to_send += seen.to_send
            if as_json:
                OUT.print(msgspec.json.encode(seen).decode(), markup=False)
            else:
                view.add_row(*_row(seen))
    if not as_json:
        OUT.print(view)
        OUT.print(f"{to_send} jobs would be sent")
    context.exit(worst)


def _row(seen: Forecast) -> tuple[str, ...]:
    counts = (seen.pages if seen.pages is not None else "?", seen.jobs, seen.to_send, seen.undecided)
    return (seen.name, *map(str, counts), _words(seen.carried), _words(seen.known) or "nothing")


def _words(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
