import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.errors import DocumentTooLarge, PathRefused, SourceNotFound, WorkerError
from handler.sources.volume import copy_from


def test_a_file_in_a_folder_is_copied_with_its_name(volume: Path, tmp_path: Path) -> None:
    (volume / "in").mkdir()
    (volume / "in" / "scan.pdf").write_bytes(b"content")
    fetched = copy_from(volume, "in//./scan.pdf", tmp_path / "copy", 100)
    assert (fetched.path.read_bytes(), fetched.name) == (b"content", "scan.pdf")


@pytest.mark.parametrize(
    "given",
    [
        "/etc/passwd",
        "../secret",
        "in/../../secret",
        "..",
        ".",
        "",
        "in",
        "in/",
        "a\0b",
        "glmocr/results/other.json",
        "GLMOCR/results/other.json",
        "./glmocr/x",
        "glmocr./x",
        "huggingface-cache/hub/weights",
        "link.pdf",
        "folder-link/scan.pdf",
        "fifo",
        "socket",
        "in/scan.pdf/more",
        "\udcff\udc00\ud800",
    ],
)
def test_what_leads_elsewhere_is_refused(volume: Path, tmp_path: Path, given: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "scan.pdf").write_bytes(b"secret")
    (volume / "in").mkdir()
    (volume / "in" / "scan.pdf").write_bytes(b"x")
    (volume / "link.pdf").symlink_to(outside / "scan.pdf")
    (volume / "folder-link").symlink_to(outside)
    os.mkfifo(volume / "fifo")
    os.mknod(volume / "socket", 0o140600)
    with pytest.raises((PathRefused, SourceNotFound)) as caught:
        copy_from(volume, given, tmp_path / "copy", 100)
    assert type(caught.value) is PathRefused


def test_a_missing_file_a_missing_volume_and_a_large_file_have_their_own_errors(volume: Path, tmp_path: Path) -> None:
    (volume / "big").write_bytes(b"x" * 101)
    cases: list[tuple[Callable[[], object], type[WorkerError]]] = [
        (lambda: copy_from(volume, "absent.pdf", tmp_path / "c", 100), SourceNotFound),
        (lambda: copy_from(volume, "n" * 300, tmp_path / "c", 100), SourceNotFound),
        (lambda: copy_from(tmp_path / "unmounted", "a.pdf", tmp_path / "c", 100), SourceNotFound),
        (lambda: copy_from(volume, "big", tmp_path / "c", 100), DocumentTooLarge),
    ]
    for call, error in cases:
        with pytest.raises(error):
            call()


def test_a_folder_swapped_for_a_link_while_walking_does_not_lead_out(
    volume: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "scan.pdf").write_bytes(b"secret")
    (volume / "a" / "b").mkdir(parents=True)
    (volume / "a" / "b" / "scan.pdf").write_bytes(b"mine")
    real_open = os.open

    def swapping_open(path: str, flags: int, *args: int, dir_fd: int | None = None) -> int:
        descriptor = real_open(path, flags, *args, dir_fd=dir_fd)
        if path == "a":
            (volume / "a" / "b").rename(volume / "moved")
            (volume / "a" / "b").symlink_to(outside)
        return descriptor

    monkeypatch.setattr(os, "open", swapping_open)
    with pytest.raises(PathRefused):
        copy_from(volume, "a/b/scan.pdf", tmp_path / "copy", 100)
