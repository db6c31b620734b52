"""The demo leaves nothing behind, however it ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.support.stack import ROOT
from tests.support.survivors import survivors

DOCUMENT = ROOT / "handler" / "golden" / "page.pdf"


@pytest.fixture
def demo() -> Iterator[subprocess.Popen[str]]:
    argv = [sys.executable, "-m", "scripts.demo", str(DOCUMENT)]
    environment = {**os.environ, "BOOT_GOLDEN_PAGE": "off"}
    with subprocess.Popen(
        argv,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        yield process
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)


def family_once(demo: subprocess.Popen[str], seen: Callable[[list[psutil.Process]], bool]) -> list[psutil.Process]:
    """The demo's descendants, as soon as `seen` holds of them."""
    parent = psutil.Process(demo.pid)
    while not seen(family := parent.children(recursive=True)):
        assert demo.poll() is None, demo.stdout and demo.stdout.read()
        psutil.wait_procs([parent], timeout=0.05)
    return family


def runs(family: list[psutil.Process], module: str) -> bool:
    return any(module in command(process) for process in family)


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


@pytest.mark.parametrize("when", ["handler.engine.rapidocr_server", "glmocr_runpod"], ids=["booting", "reading"])
def test_ctrl_c_ends_everything(demo: subprocess.Popen[str], when: str) -> None:
    family = family_once(demo, lambda family: runs(family, when))
    worker = next(process for process in family if "handler" in command(process))
    assert os.getpgid(worker.pid) != os.getpgid(demo.pid)
    os.killpg(demo.pid, signal.SIGINT)
    output, _ = demo.communicate(timeout=60)
    assert demo.returncode == 130, output
    assert survivors(family) == []


def test_a_whole_demo_ends_with_results_and_without_processes(demo: subprocess.Popen[str]) -> None:
    family = family_once(demo, lambda family: runs(family, "glmocr_runpod"))
    output, _ = demo.communicate(timeout=110)
    assert demo.returncode == 0, output
    assert "complete" in output
    assert survivors(family) == []
