import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.image.conftest import ROOT, SECRET, Buildah

pytestmark = [pytest.mark.image, pytest.mark.timeout(3600)]
MB = 1_000_000
LIMIT = 450 * MB
"""Of what we add, without weights, packed as well as unpacked."""
OURS = ("opt/handler-venv", "app", "start.sh", "models", "home/worker")


def ours(rootfs: Path) -> Iterator[Path]:
    """Every file we add to the base. Links lead out of it, to the base's Python."""
    for name in OURS:
        place = rootfs / name
        paths = [place] if place.is_file() else place.rglob("*")
        yield from (path for path in paths if path.is_file() and not path.is_symlink())


def test_it_runs_as_nobody_in_particular_and_starts_through_start_sh(buildah: Buildah, image: str) -> None:
    config = buildah.inspect(image)["Docker"]["config"]

    assert config["Entrypoint"] == ["/start.sh"]
    assert config["User"] == "1000:0"
    assert not config["Cmd"]
    environment = dict(variable.split("=", 1) for variable in config["Env"])
    assert environment["HF_HUB_OFFLINE"] == "1"
    assert environment["HANDLER_PYTHON"] == "/opt/handler-venv/bin/python"


def test_our_layers_are_small(buildah: Buildah, image: str, rootfs: Path) -> None:
    sizes = {name: sum(path.stat().st_size for path in ours(rootfs) if name in path.parts) for name in ("app",)}
    unpacked = sum(path.stat().st_size for path in ours(rootfs))
    pack = f"tar -C '{rootfs}' -cf - {' '.join(OURS)} | gzip -6 | wc -c"
    packed = int(subprocess.run(["bash", "-o", "pipefail", "-c", pack], capture_output=True, check=True).stdout)
    print(
        f"\nour layers: {packed / MB:.0f} MB as a registry keeps them, {unpacked / MB:.0f} MB unpacked;"
        f" of that a change of the handler moves {sizes['app'] / MB:.1f} MB"
    )
    assert packed < LIMIT
    assert unpacked < LIMIT
    assert sizes["app"] < 10 * MB


def test_no_secret_and_no_weights_of_the_layout_model_are_in_it(buildah: Buildah, image: str, rootfs: Path) -> None:
    record = json.dumps(buildah.inspect(image))
    found = [path for path in ours(rootfs) if SECRET.encode() in path.read_bytes()]

    assert SECRET not in record
    assert found == []
    assert [path for path in ours(rootfs) if path.suffix == ".safetensors"] == []


def test_without_a_gpu_it_ends_with_one_line_that_says_so(buildah: Buildah, image: str) -> None:
    container = buildah.run("buildah", "from", image).stdout.strip()
    try:
        done = buildah.run("buildah", "run", "--isolation", "chroot", container, "/start.sh", check=False)
    finally:
        buildah.run("buildah", "rm", container)

    assert done.returncode == 1
    assert "start.sh: no NVIDIA driver in this container" in done.stderr


def test_it_reads_a_document_on_the_embedded_engine(buildah: Buildah, image: str) -> None:
    done = buildah.run("scripts/boot-image", image)

    print(done.stdout)
    result = json.loads((ROOT / "out" / "image" / "agreement.json").read_text())
    assert result["status"] == "complete"
    assert [page["status"] for page in result["pages"]] == ["ok"] * 3
    assert "Handler output" not in done.stderr, "the SDK logs documents"
    assert "agreement" in (ROOT / "out" / "image" / "agreement.md").read_text().lower()
