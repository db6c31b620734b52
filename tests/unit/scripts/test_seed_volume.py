import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from rich.progress import Progress

from handler.errors import ModelError
from scripts.seed_volume import MAX_PART, UploadError, Volume, client, main, parts_of, seed
from tests.hub import REVISION, Hub
from tests.support.servers import s3_server

VOLUME = "volume-id"
PART = 5 * 1024 * 1024
FILES = {"config.json": b"{}", "model.safetensors": random.Random(5).randbytes(2 * PART + 1000)}
KEY = f"glmocr/models/tiny/{REVISION}/model.safetensors"


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.fixture
def s3(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    s3 = client(s3_url, "us-east-1")
    s3.create_bucket(Bucket=VOLUME)
    for listed in s3.list_objects_v2(Bucket=VOLUME).get("Contents", []):
        s3.delete_object(Bucket=VOLUME, Key=listed["Key"])
    return s3


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "models.manifest.yaml"
    path.write_text(Hub(FILES).manifest())
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "models" / "tiny" / REVISION
    directory.mkdir(parents=True)
    for name, data in FILES.items():
        (directory / name).write_bytes(data)
    return tmp_path / "models"


class Counting:
    """Passes everything on, counts the parts sent, and breaks the line at one of them."""

    def __init__(self, s3: Any, broken_at: int | None = None) -> None:
        self.s3 = s3
        self.broken_at = broken_at
        self.parts: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.s3, name)

    def upload_part(self, **given: Any) -> Any:
        self.parts.append(given["PartNumber"])
        if given["PartNumber"] == self.broken_at:
            raise EndpointConnectionError(endpoint_url="gone")
        return self.s3.upload_part(**given)


def volume(s3: Any) -> Volume:
    return Volume(s3, VOLUME, Progress(disable=True), PART)


def stored(s3: Any) -> dict[str, bytes]:
    prefix = f"glmocr/models/tiny/{REVISION}/"
    keys = [listed["Key"] for listed in s3.list_objects_v2(Bucket=VOLUME).get("Contents", [])]
    return {key.removeprefix(prefix): s3.get_object(Bucket=VOLUME, Key=key)["Body"].read() for key in keys}


def test_the_files_lie_where_a_worker_with_the_volume_looks(s3: Any, root: Path, manifest: Path) -> None:
    seed(volume(s3), "tiny", root, manifest)

    assert stored(s3) == FILES


def test_an_interrupted_upload_sends_only_what_is_missing(s3: Any, root: Path, manifest: Path) -> None:
    broken = Counting(s3, broken_at=3)
    with pytest.raises(EndpointConnectionError):
        seed(volume(broken), "tiny", root, manifest)
    assert "model.safetensors" not in stored(s3)

    again = Counting(s3)
    seed(volume(again), "tiny", root, manifest)

    assert again.parts == [3]
    assert stored(s3) == FILES


def test_what_is_there_already_is_not_sent_again(s3: Any, root: Path, manifest: Path) -> None:
    seed(volume(s3), "tiny", root, manifest)
    again = Counting(s3)

    seed(volume(again), "tiny", root, manifest)

    assert again.parts == []


def test_other_bytes_of_the_same_size_are_replaced(s3: Any, root: Path, manifest: Path) -> None:
    s3.put_object(Bucket=VOLUME, Key=KEY, Body=b"?" * len(FILES["model.safetensors"]))

    seed(volume(s3), "tiny", root, manifest)

    assert stored(s3) == FILES


def test_a_server_that_keeps_other_bytes_is_found_out(s3: Any, root: Path, manifest: Path) -> None:
    class Lossy(Counting):
        def upload_part(self, **given: Any) -> Any:
            return self.s3.upload_part(**given | {"Body": bytes(len(given["Body"]))})

    with pytest.raises(UploadError, match=r"model\.safetensors on the volume differs"):
        seed(volume(Lossy(s3)), "tiny", root, manifest)


def test_an_incomplete_model_is_not_uploaded(s3: Any, root: Path, manifest: Path) -> None:
    (root / "tiny" / REVISION / "config.json").unlink()

    with pytest.raises(ModelError, match=r"config\.json is missing"):
        seed(volume(s3), "tiny", root, manifest)
    assert stored(s3) == {}


def test_the_command_line_and_its_one_line_of_failure(
    s3: Any,
    s3_url: str,
    root: Path,
    manifest: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["seed-volume", "tiny", str(root), "--endpoint-url", s3_url, "--region", "us-east-1"]
    monkeypatch.setattr("sys.argv", [*given, "--manifest", str(manifest), "--volume", VOLUME])
    assert main() == 0
    assert stored(s3) == FILES
    monkeypatch.setattr("sys.argv", [*given, "--manifest", str(manifest), "--volume", "absent"])
    assert main() == 1
    assert "NoSuchBucket" in capsys.readouterr().err


def test_a_part_is_never_larger_than_the_api_takes() -> None:
    assert [part.size for part in parts_of(2_650_579_464, MAX_PART)] == [MAX_PART] * 5 + [150_579_464]
    assert [part.size for part in parts_of(0, PART)] == [0]
    with pytest.raises(UploadError):
        parts_of(10, MAX_PART + 1)
    with pytest.raises(UploadError):
        parts_of(20_000, 1)
