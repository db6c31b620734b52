"""Settings: arguments before the environment before the file; keys never shown."""

from pathlib import Path

import pytest
from glmocr_runpod.config import RUNPOD_URL, load
from glmocr_runpod.errors import ConfigError


def test_the_order_of_places(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('runpod_api_key = "from-file"\nrunpod_endpoint_id = "file"\nglmocr_pages_per_job = 7\n')
    environment = {"RUNPOD_ENDPOINT_ID": "environment", "GLMOCR_DOWNSAMPLE_OVERSIZED": "off", "RUNPOD_API_URL": ""}
    config = load(environment, file)
    assert (config.runpod_api_key, config.runpod_endpoint_id) == ("from-file", "environment")
    assert (config.glmocr_pages_per_job, config.glmocr_downsample_oversized) == (7, False)
    assert config.runpod_api_url == RUNPOD_URL
    assert load(environment, file, runpod_endpoint_id="given").runpod_endpoint_id == "given"


@pytest.mark.parametrize(
    ("name", "value"),
    [("GLMOCR_DOWNSAMPLE_OVERSIZED", "maybe"), ("GLMOCR_PAGES_PER_JOB", "few"), ("GLMOCR_GPU_PRICE_PER_HOUR", "x")],
)
def test_a_bad_value_is_named(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load({name: value}, tmp_path / "none.toml")


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("runpod_api_kez = 'x'")
    with pytest.raises(ConfigError, match="runpod_api_kez"):
        load({}, file)
    file.write_text("not toml")
    with pytest.raises(ConfigError, match=r"config\.toml"):
        load({}, file)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="RUNPOD_API_KEY and RUNPOD_ENDPOINT_ID"):
        load({}, tmp_path / "none.toml").require_endpoint()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RUNPOD_API_KEY", "two words"),
        ("RUNPOD_API_KEY", "ключ"),
        ("RUNPOD_ENDPOINT_ID", "id/run"),
        ("RUNPOD_API_URL", "api.runpod.ai/v2"),
        ("RUNPOD_API_URL", "https://"),
    ],
)
def test_what_could_not_be_sent_is_refused_before_it_looks_ambiguous(tmp_path: Path, name: str, value: str) -> None:
    good = {"RUNPOD_API_KEY": " rp_key\n", "RUNPOD_ENDPOINT_ID": "abc123"}
    assert load(good, tmp_path / "none.toml").require_endpoint().runpod_api_key == "rp_key"
    with pytest.raises(ConfigError, match=name):
        load(good | {name: value}, tmp_path / "none.toml").require_endpoint()


def test_one_endpoint_has_one_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spelled = [load({"RUNPOD_API_URL": url}, tmp_path / "none.toml") for url in ("http://h/v2", "http://h/v2/")]
    assert len({config.api_url for config in spelled}) == 1
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load({"GLMOCR_STATE_DIR": "~/state"}, tmp_path / "none.toml").state_directory == tmp_path / "state"


def test_keys_are_not_shown(tmp_path: Path) -> None:
    secrets = {
        "RUNPOD_API_KEY": "rp_secret",
        "BUCKET_ACCESS_KEY_ID": "id_secret",
        "BUCKET_SECRET_ACCESS_KEY": "s3_secret",
        "GLMOCR_PASSWORD": "pdf_secret",
        "BUCKET_NAME": "papers",
    }
    shown = repr(load(secrets, tmp_path / "none.toml"))
    assert "papers" in shown
    assert "secret" not in shown
