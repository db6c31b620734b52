"""`start.sh` with settings that cannot be used: exit status 1 and one line that says what to change."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.stack import START, worker_settings


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"GLMOCR_ENGINE": "tesseract", "MAX_PAGES": "0", "SHUTDOWN_GRACE_S": "soon", "BOOT_GOLDEN_PAGE": "perhaps"},
            ("GLMOCR_ENGINE='tesseract'", "'rapidocr'", "MAX_PAGES='0'", "SHUTDOWN_GRACE_S='soon'", "='perhaps'"),
        ),
        ({"GLMOCR_ENGINE": "external", "GLMOCR_LAYOUT": "cdla"}, ("ENGINE_URL", "external")),
        ({"GLMOCR_ENGINE": "external", "ENGINE_URL": "http://127.0.0.1:9"}, ("GLMOCR_LAYOUT", "whole_page")),
        ({"HANDLER_PYTHON": "/nowhere/python"}, ("HANDLER_PYTHON",)),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_bad_value_ends_the_boot_in_one_line(tmp_path: Path, settings: dict[str, str], says: tuple[str, ...]) -> None:
    environment = {**os.environ, **worker_settings(tmp_path, **settings)}
    ended = subprocess.run([START], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert all(part in line for part in says), line
