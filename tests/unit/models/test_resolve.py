import logging
from pathlib import Path

import pytest

from handler.errors import ModelError
from handler.models import resolve as resolving
from handler.models.manifest import Manifest
from handler.models.resolve import resolve
from handler.models.store import runpod_cache_path, store_path, volume_models
from handler.settings import Settings
from tests.hub import Hub


@pytest.fixture
def places(tmp_path: Path, files: dict[str, bytes]) -> dict[str, Path]:
    """Where each place would hold the model."""
    entry = Hub(files).entry()
    volume = tmp_path / "volume"
    return {
        "explicit": tmp_path / "mine",
        "image": store_path(tmp_path / "models", "tiny", entry),
        "runpod_cache": runpod_cache_path(volume, entry),
        "volume": store_path(volume_models(volume), "tiny", entry),
    }


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "volume").mkdir()
    return Settings(models_path=tmp_path / "models", runpod_volume_path=tmp_path / "volume")


@pytest.fixture(autouse=True)
def manifest(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = Manifest(version=1, models={"tiny": Hub(files).entry()})
    monkeypatch.setattr(resolving, "load_manifest", lambda: manifest)


def fill(directory: Path, files: dict[str, bytes]) -> None:
    directory.mkdir(parents=True)
    for name, data in files.items():
        (directory / name).write_bytes(data)


def test_the_first_place_that_has_it_wins(places: dict[str, Path], settings: Settings, files: dict[str, bytes]) -> None:
    for place in ("volume", "runpod_cache", "image"):
        fill(places[place], files)
        assert resolve("tiny", settings) == places[place]
    fill(places["explicit"], files)
    assert resolve("tiny", settings.model_copy(update={"model_path": places["explicit"]})) == places["explicit"]


def test_a_corrupt_place_is_passed_over(places: dict[str, Path], settings: Settings, files: dict[str, bytes]) -> None:
    fill(places["image"], files | {"model.safetensors": b"half"})
    fill(places["volume"], files)

    assert resolve("tiny", settings) == places["volume"]


def test_nowhere_means_download_to_the_volume(hub: Hub, places: dict[str, Path], settings: Settings) -> None:
    assert resolve("tiny", settings) == places["volume"]
    assert resolve("tiny", settings) == places["volume"]
    assert len(hub.served) == 2


@pytest.mark.parametrize("volume", ["absent", "read-only"])
def test_without_a_volume_to_write_to_it_goes_to_the_images_own_place(
    volume: str, places: dict[str, Path], settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []
    monkeypatch.setattr(resolving, "obtain_in_child", lambda _, destination: asked.append(destination))
    if volume == "absent":
        settings = settings.model_copy(update={"runpod_volume_path": tmp_path / "none"})
    else:
        monkeypatch.setattr("os.access", lambda *_: False)

    assert resolve("tiny", settings) == places["image"]
    assert asked == [places["image"]]
    assert not (tmp_path / "none").exists()


def test_other_weights_in_an_explicit_directory_are_reported_and_used(
    places: dict[str, Path],
    settings: Settings,
    files: dict[str, bytes],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("handler"), "propagate", True)
    fill(places["explicit"], files | {"model.safetensors": b"fine-tuned"})

    assert resolve("tiny", settings.model_copy(update={"model_path": places["explicit"]})) == places["explicit"]
    assert "is not acme/tiny at 0123" in caplog.text


def test_an_explicit_directory_without_a_model_ends_the_boot(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"MODEL_PATH=.*has no config\.json"):
        resolve("tiny", settings.model_copy(update={"model_path": tmp_path}))


def test_a_model_that_may_not_be_downloaded_and_is_nowhere_names_the_setting(
    settings: Settings, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = Manifest(version=1, models={"tiny": Hub(files).entry(places=["explicit", "image"])})
    monkeypatch.setattr(resolving, "load_manifest", lambda: manifest)

    with pytest.raises(ModelError, match=r"explicit, image\); set MODEL_PATH"):
        resolve("tiny", settings)
