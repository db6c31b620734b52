import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from handler.job_folder import PREFIX, job_folder, sweep

HOLD = """
from handler.job_folder import job_folder
with job_folder() as folder:
    (folder / "document").write_bytes(b"a page")
    print(folder, flush=True)
    input()
"""
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, of this process and its children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_a_folder_is_gone_after_its_block(disk: Path) -> None:
    with job_folder() as folder:
        assert folder.parent == disk
        (folder / "document").touch()
    assert list(disk.iterdir()) == []


def test_what_a_killed_worker_left_is_swept_and_what_is_in_use_stays(disk: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        left = Path(worker.stdout.readline().strip())
        with job_folder() as mine:
            assert sweep() == 0
            worker.kill()
            worker.wait()
            assert (left / "document").exists()
            assert sweep() == 1
            assert list(disk.iterdir()) == [mine]


def test_only_folders_of_jobs_are_touched(disk: Path) -> None:
    outside = disk / "outside"
    outside.mkdir()
    (disk / f"{PREFIX}link").symlink_to(outside)
    (disk / f"{PREFIX}file").touch()
    assert sweep() == 0
    assert len(list(disk.iterdir())) == 3


def test_a_folder_that_a_sweep_took_before_it_was_locked_is_made_again(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = iter([tempfile.mkdtemp(prefix=PREFIX), tempfile.mkdtemp(prefix=PREFIX)])
    swept = []

    def mkdtemp(prefix: str) -> str:
        folder = next(made)
        if not swept:
            Path(folder).rmdir()
            swept.append(folder)
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", mkdtemp)
    with job_folder() as folder:
        assert folder.is_dir()
        assert str(folder) not in swept
