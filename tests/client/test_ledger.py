"""The SQLite ledger, also as several processes share it."""

import multiprocessing
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from glmocr_runpod.contract import ErrorInfo
from glmocr_runpod.disk import write_atomically
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.resume import Entry, Stage

KEY = "ab" * 32


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteLedger]:
    ledger = SqliteLedger(tmp_path / "state")
    yield ledger
    ledger.close()


def entry(stage: Stage = Stage.SUBMITTED, key: str = KEY) -> Entry:
    error = ErrorInfo(code="c", message="é", retryable=True, details={"a": [1]})
    return Entry(
        key=key, content_key="c", name="n.pdf", stage=stage, idempotency_key="i", job_id="j", ttl_s=5, error=error
    )


def test_jobs_are_kept_and_replaced(ledger: SqliteLedger, tmp_path: Path) -> None:
    assert ledger.get(KEY) is None
    ledger.put(entry())
    ledger.put(entry(Stage.STORED))
    again = SqliteLedger(tmp_path / "state")
    assert again.get(KEY) == entry(Stage.STORED)
    again.close()


def test_the_last_changed_comes_first(ledger: SqliteLedger) -> None:
    for key in ("a", "b", "c"):
        ledger.put(entry(key=key))
    ledger.put(entry(Stage.STORED, "a"))
    assert [found.key for found in ledger.entries()] == ["a", "c", "b"]


def test_blobs(ledger: SqliteLedger) -> None:
    assert ledger.load("x") is None
    ledger.save("x", b"1")
    ledger.save("x", b"2")
    assert ledger.load("x") == b"2"
    ledger.drop("x")
    ledger.drop("x")
    assert ledger.load("x") is None


def test_plans(ledger: SqliteLedger) -> None:
    ledger.put_plan("a", b"1")
    ledger.put_plan("b", b"2")
    assert ledger.get_plan("a") == b"1"
    assert ledger.get_plan("c") is None
    assert ledger.plans() == [("b", b"2"), ("a", b"1")]


def test_a_lease_excludes_within_a_process(ledger: SqliteLedger) -> None:
    lease = ledger.lease(KEY)
    assert lease is not None
    with lease:
        assert ledger.lease(KEY) is None
    assert ledger.lease(KEY) is not None


def _hold(directory: Path, held: "multiprocessing.synchronize.Event") -> None:
    lease = SqliteLedger(directory).lease(KEY)
    assert lease is not None
    with lease:
        held.set()
        multiprocessing.Event().wait()


def test_a_killed_process_leaves_its_lease(ledger: SqliteLedger, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    held = context.Event()
    process = context.Process(target=_hold, args=(tmp_path / "state", held))
    process.start()
    assert held.wait(30)
    assert ledger.lease(KEY) is None
    process.kill()
    process.join()
    assert ledger.lease(KEY) is not None


def _put_many(directory: Path, name: str) -> None:
    ledger = SqliteLedger(directory)
    for number in range(30):
        ledger.put(entry(key=f"{name}{number}"))
    ledger.close()


def test_several_processes_write_at_once(ledger: SqliteLedger, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_put_many, args=(tmp_path / "state", name)) for name in "abc"]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(ledger.entries()) == 90


def test_it_is_in_wal_mode_and_private(ledger: SqliteLedger, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "state" / "ledger.sqlite3") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_a_file_is_whole_or_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.json"
    write_atomically(target, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
