"""What RunPod's Hub reads: a listing whose settings exist, and tests whose jobs the contract accepts."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.engine.sglang import choose_profile
from handler.schema import SOURCE_KEYS, JobInput
from handler.settings import Settings
from scripts.make_hub_tests import TESTS, hub_tests

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def hub() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / ".runpod" / "hub.json").read_text())
    return loaded


def test_the_tests_are_the_scripts_and_valid_jobs_that_need_no_network() -> None:
    assert json.loads(TESTS.read_text()) == hub_tests(), "run: python -m scripts.make_hub_tests"
    for test in hub_tests()["tests"]:
        job = JobInput.model_validate(test["input"])
        assert job.probe or job.file_base64
        assert [key for key in SOURCE_KEYS if test["input"].get(key)] in ([], ["file_base64"])


def test_every_setting_offered_exists_with_that_default(hub: dict[str, Any]) -> None:
    for variable in hub["config"]["env"]:
        name = variable["key"].lower()
        default = Settings.model_fields[name].default
        offered = variable["input"]["default"]
        assert offered == ("" if default is None else default), variable["key"]
    for preset in hub["config"]["presets"]:
        Settings(**{name.lower(): value for name, value in preset["defaults"].items()})


def test_the_cuda_versions_are_the_endpoints_everywhere(hub: dict[str, Any]) -> None:
    endpoint = yaml.safe_load((ROOT / "deploy" / "endpoint.yaml").read_text())
    versions = endpoint["cuda_versions"]

    assert hub["config"]["allowedCudaVersions"] == versions
    assert hub_tests()["config"]["allowedCudaVersions"] == versions
    assert hub["config"]["containerDiskInGb"] == endpoint["container_disk_gb"]


def test_the_compose_file_gives_the_worker_a_gpu_and_settings_that_exist() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]

    assert services["worker"]["deploy"]["resources"]["reservations"]["devices"][0]["capabilities"] == ["gpu"]
    for service in ("worker", "spark"):
        ours = [name for name in services[service]["environment"] if name.lower() in Settings.model_fields]
        assert "GLMOCR_ENGINE" in ours
    profile = services["spark"]["environment"]["SGLANG_PROFILE"]
    assert choose_profile(profile, (), "glm-ocr").flags["attention-backend"] == "triton"
