"""`glmocr-runpod prune`: what the state directory may forget."""

import time

import click
import msgspec

from glmocr_runpod.cli.console import ERR, OUT, SHOWN_REFERENCE
from glmocr_runpod.config import load
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.prune import ON_DEMAND, Forgotten, plan_pruning, prune
from glmocr_runpod.resume import Stage

DAY_S = 86_400


@click.command(name="prune")
@click.option("--older-than", type=click.IntRange(0), default=30, show_default=True, help="Days without a change.")
@click.option(
    "--also",
    multiple=True,
    type=click.Choice(sorted(ON_DEMAND)),
    help="Documents that may have cost money without a result, too; repeat for both.",
)
@click.option("--yes", is_flag=True, help="Do it; without, it is only shown.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout.")
def command(older_than: int, also: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Forget documents that were settled long ago, with their results. Shows them, and does it with --yes.

    Results that were written elsewhere stay. A document that is forgotten is paid for when it is sent again. Live jobs
    are never forgotten.
    """
    ledger = SqliteLedger(load().state_directory)
    pruning = plan_pruning(ledger, time.time() - older_than * DAY_S, [Stage(word) for word in also])
    if yes:
        prune(ledger, pruning)
    ledger.close()
    for document in pruning.documents:
        OUT.print(msgspec.json.encode(document).decode() if as_json else _line(document), markup=False)
    done = "forgotten" if yes else "would be forgotten; --yes does it"
    ERR.print(f"{len(pruning.documents)} documents, {len(pruning.files)} files, {pruning.size / 1e6:.1f} MB {done}")


def _line(document: Forgotten) -> str:
    stages = ", ".join(f"{count} {stage}" for stage, count in sorted(document.stages.items())) or "planned"
    day = time.strftime("%Y-%m-%d", time.localtime(document.changed)) if document.changed else " " * 10
    return f"{document.reference[:SHOWN_REFERENCE]}  {day}  {stages:24}  {document.name}"
