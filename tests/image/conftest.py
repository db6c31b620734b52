"""The image, built by buildah on a stand-in for SGLang's: a Debian root file system of debootstrap's."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "glmocr-image"
BASE = "localhost/glmocr-standin"
NAME = "localhost/glmocr-worker"
SECRET = "hf_planted_c0ffee_token"
HOST_FILES = ("/etc/ssl/certs", "/etc/pip.conf", "/usr/local/share/ca-certificates")
"""How this host reaches the package index, handed to the build from outside."""
NOT_IN_THE_STANDIN = "patches,sglang,arguments"
"""Checks of the build that need the real SGLang, torch and transformers; CI's build leaves none out."""


def _overlay_works() -> bool:
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        parts = {name: Path(folder) / name for name in ("lower", "upper", "work", "merged")}
        for part in parts.values():
            part.mkdir()
        options = f"lowerdir={parts['lower']},upperdir={parts['upper']},workdir={parts['work']}"
        mount = ["mount", "-t", "overlay", "overlay", "-o", options, str(parts["merged"])]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return False
        subprocess.run(["umount", str(parts["merged"])], check=True)
        return True


@dataclass(frozen=True)
class Buildah:
    """buildah with a storage of its own, kept between runs."""

    env: dict[str, str]

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Any command in that environment; its output goes to the terminal only where the command fails."""
        done = subprocess.run(command, env=self.env, cwd=ROOT, capture_output=True, text=True, check=False)
        if check and done.returncode:
            pytest.fail(f"{' '.join(command)}\n{done.stdout[-6000:]}\n{done.stderr[-6000:]}")
        return done

    def inspect(self, image: str) -> dict[str, Any]:
        """The image's record."""
        record: dict[str, Any] = json.loads(self.run("buildah", "inspect", "--type", "image", image).stdout)
        return record


@pytest.fixture(scope="session")
def buildah() -> Buildah:
    missing = [tool for tool in ("buildah", "debootstrap", "crun") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        pytest.fail(f"make test-image needs root and the Debian packages {', '.join(missing) or 'it has'}")
    CACHE.mkdir(parents=True, exist_ok=True)
    driver = "overlay" if _overlay_works() else "vfs"
    conf = CACHE / "storage.conf"
    graph, run = CACHE / "storage", CACHE / "run"
    conf.write_text(f'[storage]\ndriver = "{driver}"\ngraphroot = "{graph}"\nrunroot = "{run}"\n')
    return Buildah(os.environ | {"CONTAINERS_STORAGE_CONF": str(conf), "STORAGE_DRIVER": driver})


@pytest.fixture(scope="session")
def base(buildah: Buildah) -> str:
    buildah.run("scripts/standin-base", BASE)
    return BASE


@pytest.fixture(scope="session")
def image(buildah: Buildah, base: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Our Dockerfile, unchanged."""
    secret = tmp_path_factory.mktemp("secret") / "token"
    secret.write_text(SECRET)
    mounts = [word for path in HOST_FILES if Path(path).exists() for word in ("--volume", f"{path}:{path}:ro")]
    arguments = {"BASE_IMAGE": base, "BAKE_MODEL": "0", "SMOKE_WITHOUT": NOT_IN_THE_STANDIN}
    given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    build = ["buildah", "bud", "--isolation", "chroot", "--format", "docker", "--layers", "--tag", NAME]
    done = buildah.run(*build, "--secret", f"id=hf_token,src={secret}", *given, *mounts, ".")
    for check in ("imports", "dependencies"):
        assert f"smoke: {check}: passed" in done.stdout + done.stderr or "Using cache" in done.stdout + done.stderr
    return NAME


@pytest.fixture(scope="session")
def rootfs(buildah: Buildah, image: str) -> Iterator[Path]:
    """The image's files."""
    container = buildah.run("buildah", "from", image).stdout.strip()
    try:
        yield Path(buildah.run("buildah", "mount", container).stdout.strip())
    finally:
        buildah.run("buildah", "rm", container)
