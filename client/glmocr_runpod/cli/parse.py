"""`glmocr-runpod parse`: documents in, Markdown and JSON out."""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.progress import Progress

from glmocr_runpod.batch import stems
from glmocr_runpod.cli.console import OUT, Bar, Done, bars, complain, exit_of, record, table
from glmocr_runpod.cli.options import client_for, options_from, reading, submitting
from glmocr_runpod.client import Client
from glmocr_runpod.contract import Options
from glmocr_runpod.document import Document
from glmocr_runpod.errors import ClientError, SourceError
from glmocr_runpod.sources import Given

STDIO = "-"
STDIN_NAME = "stdin"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option(
    "-o",
    "--output",
    default=".",
    show_default="this directory",
    help="Directory for the results; - writes them to stdout.",
)
@click.option("-j", "--concurrency", type=click.IntRange(1, 64), default=4, show_default=True)
@reading
@submitting
@click.pass_context
def parse(
    context: click.Context, /, files: tuple[str, ...], output: str, concurrency: int, as_json: bool, **given: Any
) -> None:
    """Read FILES (paths, addresses, or - for stdin) and write NAME.md and NAME.json for each."""
    options = options_from(**given)
    names = stems([Path(file) for file in files])
    with client_for(**given) as client, bars() as progress:

        def one(file: str) -> Done:
            return _one(client, progress, file, options, lambda document: _save(document, output, names[Path(file)]))

        results = _each(client, one, files, concurrency)
    if output == STDIO:
        _write(results, as_json)
    else:
        _show(results, as_json)
    context.exit(max(exit_of(result) for result in results))


def _each(client: Client, one: Callable[[str], Done], files: Sequence[str], concurrency: int) -> list[Done]:
    with ThreadPoolExecutor(max_workers=min(concurrency, len(files))) as pool:
        futures = [pool.submit(one, file) for file in files]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            client.stop()
            raise


def _one(
    client: Client, progress: Progress, file: str, options: Options, save: Callable[[Document], list[Path]]
) -> Done:
    name = STDIN_NAME if file == STDIO else Path(file).name
    bar = Bar(progress, name)
    try:
        document = client.parse(given(file), options, name=name if file == STDIO else None, observer=bar)
        bar.end(str(document.status))
        return Done(document.name, document, save(document))
    except ClientError as error:
        bar.end(error.word)
        return Done(file, error=error)


def given(file: str) -> Given:
    """The document a command line names."""
    if file != STDIO:
        return file
    data = sys.stdin.buffer.read()
    if not data:
        raise SourceError("stdin has no bytes")
    return data


def _save(document: Document, output: str, stem: str) -> list[Path]:
    if output == STDIO:
        return []
    return document.save(output, STDIN_NAME if stem == STDIO else stem)


def _write(results: list[Done], as_json: bool) -> None:
    for result in results:
        if result.document is not None:
            content = result.document.data if as_json else result.document.markdown.encode()
            sys.stdout.buffer.write(content.rstrip(b"\n") + b"\n")
        complain(result)


def _show(results: list[Done], as_json: bool) -> None:
    if as_json:
        for result in results:
            OUT.print(msgspec.json.encode(record(result)).decode(), markup=False)
        return
    OUT.print(table(results))
    for result in results:
        for path in result.paths:
            OUT.print(str(path), markup=False)
        complain(result)
