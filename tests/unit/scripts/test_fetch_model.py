import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import REVISION, Hub, serving

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving({"config.json": b"{}", "model.safetensors": b"w" * 200_000}) as running:
        yield running


@pytest.fixture
def stage(tmp_path: Path) -> Path:
    """What the Dockerfile's stage `weights` copies, and nothing else."""
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.endswith(" AS weights"))
    end = next(number for number, line in enumerate(lines) if line.endswith(" AS worker"))
    for line in lines[begin:end]:
        if line.startswith("COPY "):
            *sources, target = shlex.split(line)[1:]
            for source in sources:
                place = tmp_path / target
                (place if target.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
                (shutil.copytree if (ROOT / source).is_dir() else shutil.copy)(ROOT / source, place)
    return tmp_path


def fetch(stage: Path, hub: Hub, to: Path) -> subprocess.CompletedProcess[str]:
    (stage / "models.manifest.yaml").write_text(hub.manifest())
    return subprocess.run(
        [sys.executable, "-m", "scripts.fetch_model", "tiny", "--to", to],
        cwd=stage,
        env=os.environ | {"HF_ENDPOINT": hub.url},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_image_build_can_fetch_the_weights_with_the_few_files_it_copies(hub: Hub, stage: Path) -> None:
    done = fetch(stage, hub, stage / "models")

    assert done.returncode == 0, done.stderr
    fetched = stage / "models" / "tiny" / REVISION
    assert {name: (fetched / name).read_bytes() for name in hub.files} == hub.files


def test_what_cannot_be_fetched_is_one_line(hub: Hub, stage: Path) -> None:
    manifest = Hub(hub.files | {"absent.json": b"?"}, url=hub.url)

    done = fetch(stage, manifest, stage / "models")

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("fetch-model: absent.json of acme/tiny could not be fetched")
