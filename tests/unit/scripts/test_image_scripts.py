"""The shell around docker, with a docker that writes down what it is asked."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BASE_DIGEST = "sha256:" + "b" * 64
DIGEST = "sha256:" + "d" * 64
DOCKER = f"""#!/usr/bin/env bash
printf '%s\\n' "$*" >>"$ASKED"
while (($#)); do
  [[ $1 != --metadata-file ]] || printf '{{"containerimage.digest": "{DIGEST}"}}' >"$2"
  [[ $1 != inspect ]] || printf '{{"digest": "{BASE_DIGEST}"}}'
  shift
done
"""


class Docker:
    """Runs our scripts; `asked` is what they wanted of docker."""

    def __init__(self, folder: Path) -> None:
        self._asked = folder / "asked"
        self.output = folder / "output"
        program = folder / "docker"
        program.write_text(DOCKER)
        program.chmod(0o755)
        self._env = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "ASKED": str(self._asked),
            "GITHUB_OUTPUT": str(self.output),
        }

    def run(self, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=ROOT, env=self._env | env, capture_output=True, text=True, check=False)

    @property
    def asked(self) -> list[str]:
        return self._asked.read_text().splitlines()


@pytest.fixture
def docker(tmp_path: Path) -> Docker:
    return Docker(tmp_path)


def test_a_build_pins_its_base_by_digest_and_pushes_a_plain_manifest(docker: Docker) -> None:
    done = docker.run("scripts/build-image", "ghcr.io/ACME/Worker", "--push", VERSION="1.2.3", HF_TOKEN="hf_secret")

    assert done.returncode == 0, done.stderr
    inspect, build = docker.asked
    assert inspect.startswith("buildx imagetools inspect lmsysorg/sglang:v0.5.17-cu129-runtime")
    assert f"BASE_IMAGE=lmsysorg/sglang:v0.5.17-cu129-runtime@{BASE_DIGEST}" in build
    assert f"BASE_DIGEST={BASE_DIGEST}" in build
    assert "--provenance=false --sbom=false" in build
    assert "name=ghcr.io/acme/worker,push-by-digest=true" in build
    assert "hf_secret" not in build
    assert docker.output.read_text() == f"name=ghcr.io/acme/worker\ndigest={DIGEST}\n"


def test_a_build_without_push_is_loaded_under_its_name(docker: Docker) -> None:
    assert docker.run("scripts/build-image", "worker").returncode == 0
    assert "--load --tag worker" in docker.asked[1]
    assert "--secret" not in docker.asked[1]


@pytest.mark.parametrize(
    ("version", "tags"),
    [("1.2.3", ["1.2.3", "1.2", "latest", "sha-0123456789ab"]), ("", ["main", "sha-0123456789ab"])],
    ids=["release", "main"],
)
def test_tags(version: str, tags: list[str], docker: Docker) -> None:
    done = docker.run("scripts/tag-image", "ghcr.io/a/w", DIGEST, VERSION=version, REVISION="0123456789abcdef")

    assert done.returncode == 0, done.stderr
    (asked,) = docker.asked
    assert [word.rpartition(":")[2] for word in asked.split() if word.startswith("--tag=")] == tags
    assert "--prefer-index=false" in asked
    assert asked.endswith(f"ghcr.io/a/w@{DIGEST}")
    assert docker.output.read_text() == f"image=ghcr.io/a/w@{DIGEST}\n"


def test_a_release_needs_its_version_in_the_project(docker: Docker) -> None:
    done = docker.run("scripts/release-version", "v99.0.0")

    assert done.returncode == 1
    assert done.stderr == "release-version: pyproject.toml does not say version 99.0.0\n"


def test_freeing_the_disk_is_refused_outside_ci(docker: Docker) -> None:
    assert "only for CI runners" in docker.run("scripts/free-disk").stderr


def test_a_container_gets_the_emulators_variables_and_no_others(docker: Docker) -> None:
    given = {"RUNPOD_WEBHOOK_PING": "http://h/ping/$RUNPOD_POD_ID?gpu=a b", "GLMOCR_ENGINE": "rapidocr", "OTHER": "x"}

    docker.run("scripts/container-worker", "docker run --rm", "image", **given)

    (asked,) = docker.asked
    assert asked.startswith("run --rm --env ")
    assert "--env RUNPOD_WEBHOOK_PING=http://h/ping/$RUNPOD_POD_ID?gpu=a b" in asked
    assert "--env GLMOCR_ENGINE=rapidocr" in asked
    assert "OTHER" not in asked
    assert asked.endswith(" image")
