"""The command line `glmocr-runpod`."""

import sys

import click

from glmocr_runpod.cli.parse import parse
from glmocr_runpod.errors import ClientError, Exit


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="glmocr-runpod")
def program() -> None:
    """Read documents with GLM-OCR on RunPod Serverless."""


program.add_command(parse)


def main() -> None:
    """Run the program; every error ends in one line and the exit code of its class."""
    try:
        sys.exit(program.main(standalone_mode=False))
    except click.ClickException as error:
        error.show()
        sys.exit(Exit.USAGE)
    except click.Abort:
        sys.exit(Exit.INTERRUPTED)
    except ClientError as error:
        click.echo(f"{error.code}: {error.message}", err=True)
        sys.exit(error.exit)
