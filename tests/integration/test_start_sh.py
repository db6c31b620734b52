"""`start.sh` with settings that cannot be used: exit status 1 and one line that says what to change."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.stack import START, worker_settings


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ("535.104.05", "the NVIDIA driver is 535.104.05, this image needs 570 or newer"),
        ("No devices were found", "nvidia-smi sees no GPU (No devices were found)"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "nvidia-smi sees no GPU (NVIDIA-SMI has failed",
        ),
        ("", "nvidia-smi sees no GPU (it does not answer)"),
    ],
    ids=["old driver", "no device", "no driver", "nothing"],
)
def test_a_gpu_that_cannot_be_used_ends_the_boot_in_one_line(tmp_path: Path, said: str, says: str) -> None:
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f'#!/bin/sh\necho "{said}"\nexit 9\n')
    smi.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "GLMOCR_ENGINE": "sglang"}
    ended = subprocess.run([START], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert says in line


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
