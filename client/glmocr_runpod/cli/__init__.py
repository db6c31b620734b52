"""The command line `glmocr-runpod`."""

import signal
import sys

import click
from click.shell_completion import get_completion_class

from glmocr_runpod import __version__
from glmocr_runpod.cli.batch import batch
from glmocr_runpod.cli.console import SHOWN_REFERENCE
from glmocr_runpod.cli.doctor import doctor
from glmocr_runpod.cli.forecast import command as plan
from glmocr_runpod.cli.jobs import cancel, result, status, submit, wait
from glmocr_runpod.cli.parse import parse
from glmocr_runpod.cli.prune import command as prune
from glmocr_runpod.errors import ClientError, Exit

NAME = "glmocr-runpod"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name=NAME)
def program() -> None:
    """Read documents with GLM-OCR on RunPod Serverless.

    The key and the endpoint come from RUNPOD_API_KEY and RUNPOD_ENDPOINT_ID or the configuration file.
    """


@program.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for SHELL: eval "$(glmocr-runpod completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(program, {}, NAME, "_GLMOCR_RUNPOD_COMPLETE").source())


for command in (parse, plan, submit, wait, result, cancel, batch, status, prune, doctor):
    program.add_command(command)


def main() -> None:
    """Run the program; every error ends in one line and the exit code of its class."""
    # A service manager's stop is a Ctrl-C: requests on their way are finished, so nothing ends as ambiguous.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        sys.exit(program.main(prog_name=NAME, standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; call again to go on", err=True)
        sys.exit(Exit.INTERRUPTED)
    except ClientError as error:
        reference = f" [{error.reference[:SHOWN_REFERENCE]}]" if error.reference else ""
        click.echo(f"{error.word}: {error.message}{reference}", err=True)
        sys.exit(error.exit)
