import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.models.manifest import Knowledge, load_manifest
from tests.hub import Hub, serving

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving({"config.json": b'{"a": 1}', "model.safetensors": b"w" * 100_000}) as running:
        yield running


@pytest.fixture
def manifest(hub: Hub, tmp_path: Path) -> Path:
    """One hash by public agreement, one file nobody has confirmed."""
    known, small = hub.entry().files[1], {"path": "config.json", "known": "unconfirmed", "note": "end of text"}
    agreed = known.model_dump(exclude_none=True) | {"known": "public_agreement", "sources": 2}
    path = tmp_path / "models.manifest.yaml"
    path.write_text("# kept\n" + hub.manifest(files=[agreed, small]))
    return path


def lock(hub: Hub, manifest: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ROOT / "scripts" / "lock-models", "--manifest", manifest, *arguments],
        env=os.environ | {"HF_ENDPOINT": hub.url},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_confirms_and_completes_what_the_hub_agrees_with(hub: Hub, manifest: Path) -> None:
    assert lock(hub, manifest, "--check").returncode == 1
    done = lock(hub, manifest)
    assert done.returncode == 0, done.stderr

    entry = load_manifest(manifest).model("tiny")
    assert {file.path: (file.size, file.sha256, file.known) for file in entry.files} == {
        file.path: (file.size, file.sha256, Knowledge.CONFIRMED) for file in hub.entry().files
    }
    assert entry.files[1].note == "end of text"
    assert manifest.read_text().startswith("# kept\n")
    assert lock(hub, manifest, "--check").returncode == 0


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_what_the_hub_contradicts_is_never_overwritten(name: str, hub: Hub, manifest: Path) -> None:
    lock(hub, manifest)
    before = manifest.read_text()
    hub.files[name] = hub.files[name] + b"!"

    done = lock(hub, manifest)

    assert done.returncode == 1
    assert f"tiny {name}: {name}: manifest" in done.stdout
    assert manifest.read_text() == before


def test_a_file_the_hub_no_longer_has_is_named(hub: Hub, manifest: Path) -> None:
    del hub.files["config.json"]

    done = lock(hub, manifest)

    assert done.returncode == 1
    assert "has no config.json at 0123" in done.stdout


def test_an_unreachable_hub_is_one_line(manifest: Path) -> None:
    done = lock(Hub({}, url="http://127.0.0.1:9"), manifest)

    assert done.returncode == 1
    assert done.stderr.startswith("lock-models: ")
    assert "Traceback" not in done.stderr
