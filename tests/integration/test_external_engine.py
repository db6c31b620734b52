"""`GLMOCR_ENGINE=external`: the worker on an OpenAI-compatible server that somebody else runs."""

import base64
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from emulator.jobs import JobStatus
from handler.engine.server import free_port
from tests.support.stack import ROOT, running

KEY = "somebody-elses-key"


@pytest.fixture
def server() -> Iterator[str]:
    port = free_port(0)
    argv = [sys.executable, "-m", "handler.engine.rapidocr_server", "--port", str(port), "--api-key-env", "THE_KEY"]
    with Popen(argv, cwd=ROOT, env={**os.environ, "THE_KEY": KEY}) as process:
        yield f"http://127.0.0.1:{port}/v1"
        process.terminate()


def test_it_reads_with_the_layout_model_that_was_named(server: str, tmp_path: Path) -> None:
    settings = {
        "GLMOCR_ENGINE": "external",
        "ENGINE_URL": server,
        "ENGINE_API_KEY": KEY,
        "GLMOCR_LAYOUT": "whole_page",
    }
    document = base64.b64encode((ROOT / "handler" / "golden" / "page.pdf").read_bytes()).decode()
    with running(tmp_path, **settings) as stack:
        job = stack.submit({"file_base64": document})
    assert job.status is JobStatus.COMPLETED
    assert isinstance(job.output, dict)
    assert job.output["produced_by"]["engine"] == "external"
    assert job.output["produced_by"]["layout"] == "whole_page"
    assert "quick brown fox" in job.output["markdown"]
