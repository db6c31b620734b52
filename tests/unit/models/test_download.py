import shutil
import time
from pathlib import Path

import pytest

from handler.errors import ModelError
from handler.models.download import SPARE_BYTES, obtain, obtain_in_child
from handler.models.lease import LeaseLost, hold
from handler.models.verify import MARKER, find_problems
from tests.hub import REVISION, Hub


@pytest.fixture
def destination(tmp_path: Path) -> Path:
    return tmp_path / "tiny" / REVISION


def leftovers(destination: Path) -> list[str]:
    return sorted(path.name for path in destination.parent.iterdir() if path != destination)


def test_a_child_downloads_the_manifests_files_although_this_process_is_offline(
    hub: Hub, files: dict[str, bytes], destination: Path
) -> None:
    hub.files["readme.md"] = b"not in the manifest"
    obtain_in_child(Hub(files).entry(), destination)

    assert {path.name: path.read_bytes() for path in destination.iterdir() if path.name != MARKER} == files
    assert find_problems(destination, Hub(files).entry()) == ()
    assert leftovers(destination) == []


def test_what_an_earlier_try_left_is_continued(hub: Hub, files: dict[str, bytes], destination: Path) -> None:
    staging = destination.with_name(f".staging-{REVISION}")
    staging.mkdir(parents=True)
    (staging / "model.safetensors.part").write_bytes(files["model.safetensors"][:600_000])
    (staging / "config.json").write_bytes(files["config.json"])

    obtain(hub.entry(), destination)

    assert hub.served == [("model.safetensors", 600_000)]
    assert find_problems(destination, hub.entry()) == ()


@pytest.mark.parametrize(
    "left",
    [b"wrong" * 1000, b"x" * 1_500_000, b"x" * 1_600_000],
    ids=["wrong start", "wrong and complete", "longer than the file"],
)
def test_a_damaged_rest_costs_a_second_download_and_never_survives(
    left: bytes, hub: Hub, files: dict[str, bytes], destination: Path
) -> None:
    staging = destination.with_name(f".staging-{REVISION}")
    staging.mkdir(parents=True)
    (staging / "model.safetensors.part").write_bytes(left)

    obtain(hub.entry(), destination)

    assert (destination / "model.safetensors").read_bytes() == files["model.safetensors"]


def test_a_corrupt_published_file_is_replaced(hub: Hub, files: dict[str, bytes], destination: Path) -> None:
    destination.mkdir(parents=True)
    (destination / "config.json").write_bytes(files["config.json"])
    (destination / "model.safetensors").write_bytes(files["model.safetensors"][:-1] + b"?")

    obtain(hub.entry(), destination)

    assert (destination / "model.safetensors").read_bytes() == files["model.safetensors"]
    assert leftovers(destination) == []


def test_a_hub_that_serves_other_bytes_is_refused_and_nothing_is_published(
    hub: Hub, files: dict[str, bytes], destination: Path
) -> None:
    entry = hub.entry()
    hub.files["model.safetensors"] = b"!" * len(files["model.safetensors"])

    with pytest.raises(ModelError, match=r"model\.safetensors has sha256"):
        obtain(entry, destination)

    assert not destination.exists()
    assert [name for name, _ in hub.served].count("model.safetensors") == 2


def test_a_file_the_hub_does_not_have_is_named(hub: Hub, destination: Path) -> None:
    entry = hub.entry()
    del hub.files["config.json"]

    with pytest.raises(ModelError, match=r"config\.json of acme/tiny"):
        obtain(entry, destination)


def test_an_unreachable_hub_is_a_model_error(
    files: dict[str, bytes], destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{filename}")
    monkeypatch.setattr("time.sleep", lambda _: None)

    with pytest.raises(ModelError, match="could not be fetched"):
        obtain(Hub(files).entry(), destination)


def test_an_unconfirmed_file_is_downloaded_too(hub: Hub, destination: Path) -> None:
    obtain(hub.entry(files=[{"path": "config.json", "known": "unconfirmed"}]), destination)

    assert (destination / "config.json").read_bytes() == hub.files["config.json"]


def test_a_full_disk_is_told_before_the_first_byte(hub: Hub, destination: Path) -> None:
    huge = {"path": "model.safetensors", "size": 10**15, "sha256": "0" * 64, "known": "confirmed"}

    with pytest.raises(ModelError, match="bytes free"):
        obtain(hub.entry(files=[huge]), destination)
    assert hub.served == []


def test_what_is_staged_already_needs_no_more_space(
    hub: Hub, destination: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = hub.entry()
    staging = destination.with_name(f".staging-{destination.name}")
    staging.mkdir(parents=True)
    (staging / "model.safetensors.part").write_bytes(hub.files["model.safetensors"][:1_000_000])
    space = shutil.disk_usage(staging)._replace(free=SPARE_BYTES + entry.size - 1_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: space)

    obtain(entry, destination)

    assert (destination / "model.safetensors").read_bytes() == hub.files["model.safetensors"]


def test_what_a_crash_between_two_renames_left_is_removed(hub: Hub, destination: Path) -> None:
    aside = destination.with_name(".bad-0123")
    aside.mkdir(parents=True)
    (aside / "model.safetensors").write_bytes(b"corrupt")

    obtain(hub.entry(), destination)

    assert leftovers(destination) == []
    assert not aside.exists()


def test_whoever_lost_the_lease_stops(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold(path) as lease:
        lease.confirm()
        path.unlink()
        with pytest.raises(LeaseLost):
            lease.confirm()
        with pytest.raises(LeaseLost):
            lease.check()


def test_whoever_could_not_renew_for_a_lifetime_stops_without_asking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.monotonic()
    with hold(tmp_path / "lock", lifetime_s=60) as lease:
        lease.check()
        monkeypatch.setattr("handler.models.lease.time.monotonic", lambda: now + 61)
        with pytest.raises(LeaseLost):
            lease.check()


def test_waiting_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.models.lease.ANNOUNCE_S", 0)
    with (
        hold(tmp_path / "lock"),
        pytest.raises(ModelError, match="another worker has held"),
        hold(tmp_path / "lock", patience_s=0.0),
    ):
        pass
