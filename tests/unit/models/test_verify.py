import os
from pathlib import Path

import pytest

from handler.models import verify
from handler.models.manifest import ModelEntry
from handler.models.verify import MARKER, find_problems
from tests.hub import Hub


@pytest.fixture
def entry(files: dict[str, bytes]) -> ModelEntry:
    return Hub(files).entry()


@pytest.fixture
def directory(files: dict[str, bytes], tmp_path: Path) -> Path:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose bytes were read."""
    names: list[str] = []
    real = verify.sha256_of

    def spy(path: Path) -> str:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr(verify, "sha256_of", spy)
    return names


def test_a_directory_is_hashed_once_and_trusted_while_unchanged(
    directory: Path, entry: ModelEntry, hashed: list[str]
) -> None:
    assert find_problems(directory, entry) == ()
    assert sorted(hashed) == ["config.json", "model.safetensors"]
    assert find_problems(directory, entry) == ()
    assert len(hashed) == 2


def test_a_byte_changed_in_place_is_found_although_the_size_is_right(directory: Path, entry: ModelEntry) -> None:
    assert find_problems(directory, entry) == ()
    weights = directory / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[1000] ^= 1
    weights.write_bytes(data)
    os.utime(weights, (2_000_000_000, 2_000_000_000))

    (problem,) = find_problems(directory, entry)

    assert problem.startswith("model.safetensors has sha256")


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda at: (at / "config.json").unlink(), "config.json is missing"),
        (
            lambda at: os.truncate(at / "model.safetensors", 750_000),
            "model.safetensors has 750000 bytes, not 1500000",
        ),
    ],
    ids=["missing", "half"],
)
def test_what_is_missing_or_half_there_is_named(break_it, said: str, directory: Path, entry: ModelEntry) -> None:
    assert find_problems(directory, entry) == ()
    break_it(directory)

    assert find_problems(directory, entry) == (said,)


def test_a_marker_from_another_manifest_does_not_count(directory: Path, entry: ModelEntry, hashed: list[str]) -> None:
    find_problems(directory, entry)
    other = entry.model_copy(update={"files": (entry.files[0].model_copy(update={"sha256": "0" * 64}), entry.files[1])})

    assert find_problems(directory, other) != ()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"config.json": 1}', "\x00"])
def test_a_damaged_marker_means_hashing_again(
    content: str, directory: Path, entry: ModelEntry, hashed: list[str]
) -> None:
    (directory / MARKER).write_text(content)

    assert find_problems(directory, entry) == ()
    assert len(hashed) == 2


def test_a_place_that_takes_no_marker_is_hashed_every_time(
    directory: Path, entry: ModelEntry, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError("read-only file system")

    monkeypatch.setattr(verify, "write_marker", refuse)

    assert find_problems(directory, entry) == ()
    assert find_problems(directory, entry) == ()
    assert len(hashed) == 4


def test_an_unconfirmed_file_must_be_there_and_stay_as_it_was(directory: Path, files: dict[str, bytes]) -> None:
    entry = Hub(files).entry(
        files=[{"path": "model.safetensors", "known": "unconfirmed"}, {"path": "config.json", "known": "unconfirmed"}]
    )
    assert find_problems(directory, entry) == ()
    (directory / "config.json").unlink()

    assert find_problems(directory, entry) == ("config.json is missing",)
