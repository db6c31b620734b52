"""The client as its users run it: a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.client.rig import Rig

ROOT = Path(__file__).parents[2]


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "glmocr_runpod", *arguments]


def environment(rig: Rig, **more: str) -> dict[str, str]:
    return {**os.environ, **rig.environment, "PYTHONPATH": str(ROOT / "client"), **more}


def run(rig: Rig, *arguments: str, stdin: bytes = b"", **more: str) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        command(*arguments), env=environment(rig, **more), input=stdin, capture_output=True, timeout=60, check=False
    )
    return subprocess.CompletedProcess(
        ended.args, ended.returncode, ended.stdout.decode(), ended.stderr.decode(errors="replace")
    )
