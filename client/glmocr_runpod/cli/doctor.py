"""`glmocr-runpod doctor`: what works here and what does not, and what to do about it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click
import msgspec

from glmocr_runpod import pdf
from glmocr_runpod.cli.console import OUT
from glmocr_runpod.cli.options import asking, client_for
from glmocr_runpod.config import Config, config_file, load
from glmocr_runpod.errors import ClientError, Exit
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.shrink import BROKEN_VERSIONS, ghostscript, version
from glmocr_runpod.storage import open_storage

NOBODY = "0" * 64


@dataclass(frozen=True, slots=True)
class Finding:
    """One check."""

    check: str
    good: bool
    message: str
    exit: Exit = Exit.OK
    """Of the program, when this is the first check that fails; OK for what is only advice."""


@click.command()
@asking
@click.pass_context
def doctor(context: click.Context, /, as_json: bool, endpoint: str | None) -> None:
    """Check the key, the endpoint and its workers, storage, Ghostscript and the state directory."""
    findings = list(_findings(load(runpod_endpoint_id=endpoint), endpoint))
    for finding in findings:
        if as_json:
            OUT.print(msgspec.json.encode(finding).decode(), markup=False)
        else:
            mark = "ok  " if finding.good else ("FAIL" if finding.exit else "note")
            OUT.print(f"{mark} {finding.check}: {finding.message}", markup=False)
    context.exit(next((finding.exit for finding in findings if not finding.good and finding.exit), Exit.OK))


def _findings(config: Config, endpoint: str | None) -> Iterator[Finding]:
    yield _tried("settings", lambda: _settings(config))
    yield _tried("state", lambda: _state(config))
    if config.runpod_api_key and config.runpod_endpoint_id:
        yield _tried("endpoint", lambda: _endpoint(endpoint))
    yield _tried("storage", lambda: _storage(config))
    yield _pdf()
    yield _ghostscript(config)


def _tried(check: str, work: Callable[[], str]) -> Finding:
    try:
        return Finding(check, True, work())
    except ClientError as error:
        return Finding(check, False, error.message, error.exit)
    except OSError as error:
        return Finding(check, False, str(error), Exit.USAGE)


def _settings(config: Config) -> str:
    config.require_endpoint()
    return f"endpoint {config.runpod_endpoint_id} at {config.runpod_api_url}, key set, file {config_file()}"


def _state(config: Config) -> str:
    ledger = SqliteLedger(config.state_directory)
    documents = len(ledger.plans())
    ledger.close()
    return f"{config.state_directory} remembers {documents} documents"


def _endpoint(endpoint: str | None) -> str:
    with client_for(endpoint) as client:
        health = client.health()
    workers, jobs = health.get("workers", {}), health.get("jobs", {})
    shown = (
        ", ".join(f"{count} {name}" for name, count in workers.items() if count) or "none up (they start with a job)"
    )
    return f"key accepted; workers: {shown}; {jobs.get('inQueue', 0)} jobs waiting, {jobs.get('inProgress', 0)} running"


def _storage(config: Config) -> str:
    storage = open_storage(config)
    if storage is None:
        return "none configured: large documents are divided, results over 30 minutes old cannot be recovered"
    storage.find(NOBODY)
    return f"{' and '.join(place.delivery for place in storage.places)} can be read"


def _pdf() -> Finding:
    if pdf.available():
        return Finding("pdf", True, "large PDFs can be divided")
    return Finding("pdf", False, "large PDFs cannot be divided: pip install 'glmocr-runpod[pdf]'")


def _ghostscript(config: Config) -> Finding:
    program = ghostscript()
    if program is None:
        wanted = "" if config.glmocr_downsample_oversized else " (switched off: GLMOCR_DOWNSAMPLE_OVERSIZED)"
        return Finding("ghostscript", False, f"not installed: pages over 7 MB cannot be sent{wanted}")
    found = version(program)
    if found.startswith(BROKEN_VERSIONS):
        return Finding("ghostscript", False, f"{found} damages pictures and is not used; 10.07 is repaired")
    return Finding("ghostscript", True, f"{found} at {program}")
