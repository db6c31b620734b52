import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from handler.models.manifest import Knowledge, load_manifest
from scripts.lock_models import main
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


@pytest.fixture
def lock(hub: Hub, manifest: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """The command line, in this process."""

    def run(*arguments: str, url: str = hub.url) -> int:
        monkeypatch.setattr(constants, "ENDPOINT", url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr("sys.argv", ["lock-models", "--manifest", str(manifest), *arguments])
        return main()

    return run


def test_it_confirms_and_completes_what_the_hub_agrees_with(hub: Hub, manifest: Path, lock: Callable[..., int]) -> None:
    assert lock("--check") == 1
    assert lock() == 0

    entry = load_manifest(manifest).model("tiny")
    assert {file.path: (file.size, file.sha256, file.known) for file in entry.files} == {
        file.path: (file.size, file.sha256, Knowledge.CONFIRMED) for file in hub.entry().files
    }
    assert entry.files[1].note == "end of text"
    assert manifest.read_text().startswith("# kept\n")
    assert lock("--check") == 0


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_what_the_hub_contradicts_is_never_overwritten(
    name: str, hub: Hub, manifest: Path, lock: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    lock()
    before = manifest.read_text()
    hub.files[name] = hub.files[name] + b"!"

    assert lock() == 1
    assert f"tiny {name}: {name}: manifest" in capsys.readouterr().out
    assert manifest.read_text() == before


def test_a_file_the_hub_no_longer_has_is_named(
    hub: Hub, lock: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    del hub.files["config.json"]

    assert lock() == 1
    assert "has no config.json at 0123" in capsys.readouterr().out


def test_an_unreachable_hub_is_one_line(lock: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert lock(url="http://127.0.0.1:9") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("lock-models: ")


def test_it_is_called_by_its_name_from_anywhere(hub: Hub, manifest: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / "scripts" / "lock-models", "--check", "--manifest", manifest.name],
        cwd=tmp_path,
        env=os.environ | {"HF_ENDPOINT": hub.url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (1, "")
    assert "config.json: unconfirmed -> confirmed" in done.stdout
