from pathlib import Path

import pytest
import yaml

from handler.errors import ModelError
from handler.models.manifest import Knowledge, Place, load_manifest
from handler.settings import Settings
from tests.hub import Hub


def test_the_shipped_manifest_is_valid_and_pinned() -> None:
    manifest = load_manifest()

    ocr = manifest.model("glm-ocr")
    layout = manifest.model("pp-doclayout-v3")
    assert ocr.revision == "ca5d8b3e287e52589e37c28385d9655ee4372f9d"
    assert Place.IMAGE in ocr.places
    assert Place.IMAGE not in layout.places
    assert {entry.setting.lower() for entry in manifest.models.values()} <= set(Settings.model_fields)


def test_the_file_with_the_second_end_of_text_id_is_fetched_although_nobody_confirmed_it() -> None:
    assert load_manifest().model("glm-ocr").unconfirmed == ("generation_config.json",)


def test_an_unknown_model_is_named_with_those_known() -> None:
    with pytest.raises(ModelError, match="no model 'gpt', only glm-ocr, pp-doclayout-v3"):
        load_manifest().model("gpt")


@pytest.mark.parametrize(
    "file",
    [
        {"path": "../x", "size": 1, "sha256": "0" * 64, "known": Knowledge.CONFIRMED},
        {"path": "/x", "size": 1, "sha256": "0" * 64, "known": Knowledge.CONFIRMED},
        {"path": "x", "size": 1, "sha256": "0" * 62, "known": Knowledge.CONFIRMED},
        {"path": "x", "size": 1, "known": Knowledge.CONFIRMED},
        {"path": "x", "size": 1, "sha256": "0" * 64, "known": Knowledge.UNCONFIRMED},
        {"path": "x", "sha256": "0" * 64, "known": Knowledge.CONFIRMED},
        {"path": "x", "known": Knowledge.UNCONFIRMED, "sha1": "0"},
    ],
    ids=["parent", "absolute", "short hash", "no hash", "hash but unconfirmed", "no size", "unknown key"],
)
def test_a_manifest_that_could_not_be_verified_against_is_refused(file: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "models.manifest.yaml"
    good = yaml.safe_load(Hub({"a": b"a"}).manifest())
    good["models"]["tiny"]["files"].append({key: value if value is None else str(value) for key, value in file.items()})
    path.write_text(yaml.safe_dump(good))

    with pytest.raises(ModelError, match=r"models\.manifest\.yaml cannot be used"):
        load_manifest(path)


def test_a_missing_manifest_is_a_model_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be used"):
        load_manifest(tmp_path / "none.yaml")
