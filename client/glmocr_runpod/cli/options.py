"""What several commands take, and the settings they share."""

from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import click

from glmocr_runpod.client import Client
from glmocr_runpod.config import load
from glmocr_runpod.contract import Options
from glmocr_runpod.resume import DEFAULT_CONSENTS, Consent

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

_READING: tuple[Decorator, ...] = (
    click.option("--pages", help="Which pages, 1-based: 1-3,7,10-  [default: all]"),
    click.option(
        "--format",
        "formats",
        multiple=True,
        type=click.Choice(["markdown", "json", "figures"]),
        help="Parts of the result; repeat for several.  [default: markdown and json]",
    ),
    click.option("--dpi", type=click.IntRange(50, 600), default=200, show_default=True),
    click.option("--max-tokens", type=click.IntRange(16, 131072), help="Ceiling per region."),
    click.option("--keep-furniture", is_flag=True, help="Headers, footers and page numbers in the Markdown too."),
    click.option("--read-figures", is_flag=True, help="Read text inside pictures and charts."),
    click.option("--no-checkpoint", is_flag=True, help="Leave no finished pages on the volume."),
    click.option("--transport", type=click.Choice(["auto", "inline", "volume", "s3"]), default="auto"),
    click.option("--pages-per-job", type=click.IntRange(1), help="Divide longer documents into parallel jobs."),
)

_RESUBMIT: Decorator = click.option(
    "--resubmit",
    multiple=True,
    type=click.Choice([consent.value for consent in Consent]),
    help="What may be sent again although that may cost a second run; repeat for several.  [default: failed]",
)

_ENDPOINT: Decorator = click.option("--endpoint", help="Endpoint id.  [default: RUNPOD_ENDPOINT_ID]")

_JSON: Decorator = click.option("--json", "as_json", is_flag=True, help="JSON lines on stdout.")


def reading(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of how to read a document."""
    return reduce(lambda decorated, option: option(decorated), reversed(_READING), command)


def submitting(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of sending it."""
    return _RESUBMIT(_ENDPOINT(_JSON(command)))


def asking(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of commands about what was sent before."""
    return _ENDPOINT(_JSON(command))


def client_for(
    endpoint: str | None, resubmit: tuple[str, ...] = (), pages_per_job: int | None = None, **_: Any
) -> Client:
    """A client as the options and the environment say."""
    config = load(runpod_endpoint_id=endpoint, glmocr_pages_per_job=pages_per_job)
    return Client(config=config, resubmit=[Consent(word) for word in resubmit] or DEFAULT_CONSENTS)


def options_from(
    pages: str | None,
    formats: tuple[str, ...],
    dpi: int,
    max_tokens: int | None,
    keep_furniture: bool,
    read_figures: bool,
    no_checkpoint: bool,
    transport: str,
    **_: Any,
) -> Options:
    """How to read, from the command's options; the password only from the environment."""
    return Options(
        pages=pages,
        formats=formats or Options().formats,
        dpi=dpi,
        max_tokens=max_tokens,
        furniture="keep" if keep_furniture else "drop",
        read_figures=read_figures,
        checkpoint=not no_checkpoint,
        transport=transport,
        password=load().glmocr_password or None,
    )
