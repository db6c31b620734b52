"""Workers that start cold at the same time, as real processes on one shared directory."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.models.verify import find_problems
from tests.hub import REVISION, Hub, serving

WEIGHTS = 24_000_000
"""Bytes: more than the 10 MB that the hub library holds in memory before it writes."""
WORKER = """
import sys
from pathlib import Path
from handler.models.download import obtain
from handler.models.manifest import load_manifest
obtain(load_manifest(Path(sys.argv[1])).model("tiny"), Path(sys.argv[2]), lifetime_s=2)
"""


@pytest.fixture
def hub() -> Iterator[Hub]:
    files = {"config.json": b"{}", "model.safetensors": random.Random(3).randbytes(WEIGHTS)}
    with serving(files) as running:
        yield running


def start(hub: Hub, shared: Path) -> subprocess.Popen[bytes]:
    manifest = shared.with_name("models.manifest.yaml")
    manifest.write_text(hub.manifest())
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, manifest, shared / REVISION],
        env=os.environ | {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "1"},
    )


def end(worker: subprocess.Popen[bytes]) -> int:
    try:
        return worker.wait(timeout=60)
    finally:
        worker.kill()


def test_two_cold_workers_download_it_once(hub: Hub, tmp_path: Path) -> None:
    hub.pause_s = 0.004
    shared = tmp_path / "shared"
    workers = [start(hub, shared) for _ in range(2)]

    assert [end(worker) for worker in workers] == [0, 0]

    assert sorted(hub.served) == [("config.json", 0), ("model.safetensors", 0)]
    assert find_problems(shared / REVISION, hub.entry()) == ()


def test_when_the_first_is_killed_half_way_the_second_continues_its_file(hub: Hub, tmp_path: Path) -> None:
    hub.pause_s = 0.01
    shared = tmp_path / "shared"
    first = start(hub, shared)
    assert hub.half_way.wait(timeout=60)
    second = start(hub, shared)
    first.kill()
    first.wait()
    hub.pause_s = 0.0

    assert end(second) == 0

    (resumed,) = [start for name, start in hub.served[2:] if name == "model.safetensors"]
    assert 0 < resumed < WEIGHTS
    assert [name for name, _ in hub.served].count("config.json") == 1
    assert find_problems(shared / REVISION, hub.entry()) == ()
    assert sorted(path.name for path in shared.iterdir()) == [REVISION]


def test_a_worker_that_slept_through_its_lease_writes_nothing_more(hub: Hub, tmp_path: Path) -> None:
    hub.pause_s = 0.01
    shared = tmp_path / "shared"
    sleeper = start(hub, shared)
    assert hub.half_way.wait(timeout=60)
    sleeper.send_signal(signal.SIGSTOP)
    hub.pause_s = 0.0
    assert end(start(hub, shared)) == 0
    published = (shared / REVISION / "model.safetensors").stat()

    sleeper.send_signal(signal.SIGCONT)

    assert end(sleeper) == 1
    assert (shared / REVISION / "model.safetensors").stat() == published
    assert find_problems(shared / REVISION, hub.entry()) == ()
