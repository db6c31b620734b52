"""What cannot be read comes back as FAILED, with a reason a program can act on."""

import base64
import json
from collections.abc import Callable
from typing import Any

import pymupdf
import pytest

from emulator.jobs import JobStatus
from tests.integration.conftest import MAX_DOCUMENT_BYTES, MAX_PAGES
from tests.support.stack import ROOT, Stack

GOLDEN = ROOT / "handler" / "golden" / "page.pdf"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def pages(count: int) -> bytes:
    with pymupdf.open() as document:
        for _ in range(count):
            document.new_page()
        return bytes(document.tobytes())


def large() -> bytes:
    return GOLDEN.read_bytes() + b"%" * MAX_DOCUMENT_BYTES


@pytest.mark.parametrize(
    ("wish", "code", "says"),
    [
        (lambda: {"dpi": 150}, "no_source", "file_base64"),
        (lambda: {"file_base64": encoded(b"x"), "volume_path": "x.pdf"}, "several_sources", "exactly one"),
        (lambda: {"file_base46": encoded(b"x")}, "unknown_key", "file_base64"),
        (lambda: {"file_base64": "not base64!"}, "invalid_base64", "base64"),
        (lambda: {"file_base64": encoded(b"just some text")}, "unsupported_format", ""),
        (lambda: {"file_base64": ""}, "empty_file", "no bytes"),
        (lambda: {"file_base64": encoded(pages(MAX_PAGES + 1))}, "too_many_pages", str(MAX_PAGES)),
        (lambda: {"file_base64": encoded(large())}, "document_too_large", ""),
        (lambda: {"file_base64": encoded(pages(1)), "dpi": 5000}, "invalid_input", "dpi"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_bad_input_is_failed_with_a_code(
    stack: Stack, wish: Callable[[], dict[str, Any]], code: str, says: str
) -> None:
    job = stack.submit(wish())
    assert job.status is JobStatus.FAILED
    error = json.loads(str(job.error))
    assert (error["code"], error["retryable"]) == (code, False)
    assert says in error["message"] + json.dumps(error["details"])


def test_the_worker_lives_on(stack: Stack) -> None:
    job = stack.submit({"file_base64": encoded(GOLDEN.read_bytes())})
    assert job.status is JobStatus.COMPLETED
    assert isinstance(job.output, dict)
    assert job.output["status"] == "complete"
