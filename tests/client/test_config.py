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
