"""What was sent and what came back, kept so that no document is paid for twice and no result is lost.

`Ledger` is what the client needs of a store; `SqliteLedger` is the one it has by default, a directory that several
processes share. `docs/client.md` shows one on Redis.
"""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
from filelock import FileLock, Timeout

from glmocr_runpod.disk import write_atomically
from glmocr_runpod.errors import StateError
from glmocr_runpod.resume import Entry

SCHEMA_VERSION = 1
SCHEMA = (
    "CREATE TABLE IF NOT EXISTS jobs (key TEXT PRIMARY KEY, entry BLOB NOT NULL, changed REAL NOT NULL)",
    "CREATE TABLE IF NOT EXISTS plans (key TEXT PRIMARY KEY, plan BLOB NOT NULL, made REAL NOT NULL)",
)
BUSY_S = 30.0
LOCK_STRIPES = 3
"""Hex digits of a key that name its lock file: 4096 files at most, and two jobs share one only while submitting."""


class Ledger(Protocol):
    """Jobs by key, results and parts by key. Every write is durable when the method returns."""

    def get(self, key: str) -> Entry | None:
        """The job, if known."""

    def put(self, entry: Entry) -> None:
        """Write the job. Whoever changes a job's stage holds its lease or knows its job id."""

    def entries(self) -> list[Entry]:
        """All jobs, the last changed first."""

    def lease(self, key: str) -> AbstractContextManager[None] | None:
        """The exclusive right to submit this job, or None while another has it. It ends with its holder's process."""

    def get_plan(self, key: str) -> bytes | None:
        """How a document was divided into jobs, if it was."""

    def put_plan(self, key: str, plan: bytes) -> None:
        """Write how a document is divided, before the first of its jobs is sent."""

    def plans(self) -> list[tuple[str, bytes]]:
        """Key and plan of all documents, the last one first."""

    def load(self, name: str) -> bytes | None:
        """A result or part, if kept."""

    def save(self, name: str, data: bytes) -> None:
        """Keep a result or part."""

    def drop(self, name: str) -> None:
        """Forget a part."""

    def close(self) -> None:
        """Let go of files and connections."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A job as it stands in the database."""

    entry: Entry
    changed: float
    """Seconds since 1970."""
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A result or part on the disk."""

    name: str
    size: int
    changed: float


class SqliteLedger:
    """Jobs in SQLite (WAL), results and parts as files beside it, leases as locks the system drops with the process."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._mutex = threading.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name in ("locks", "blobs"):
                (directory / name).mkdir(exist_ok=True)
            self._database = sqlite3.connect(directory / "ledger.sqlite3", timeout=BUSY_S, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", *SCHEMA):
            self._run(statement)
        (version,) = self._run("PRAGMA user_version")[0]
        if version not in (0, SCHEMA_VERSION):
            raise StateError(f"{directory} was written by another version of this client (state {version})")
        self._run(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def get(self, key: str) -> Entry | None:
        """The job, if known."""
        rows = self._run("SELECT entry FROM jobs WHERE key = ?", key)
        return msgspec.json.decode(rows[0][0], type=Entry) if rows else None

    def put(self, entry: Entry) -> None:
        """Write the job."""
        self._run("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?)", entry.key, msgspec.json.encode(entry), time.time())

    def entries(self) -> list[Entry]:
        """All jobs, the last changed first."""
        rows = self._run("SELECT entry FROM jobs ORDER BY changed DESC")
        return [msgspec.json.decode(entry, type=Entry) for (entry,) in rows]

    def lease(self, key: str) -> AbstractContextManager[None] | None:
        """The exclusive right to submit this job, or None while another has it."""
        lock = FileLock(self._directory / "locks" / f"{key[:LOCK_STRIPES]}.lock", thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return _held(lock)

    def get_plan(self, key: str) -> bytes | None:
        """How a document was divided into jobs."""
        rows = self._run("SELECT plan FROM plans WHERE key = ?", key)
        return rows[0][0] if rows else None

    def put_plan(self, key: str, plan: bytes) -> None:
        """Write how a document is divided."""
        self._run("INSERT OR REPLACE INTO plans VALUES (?, ?, ?)", key, plan, time.time())

    def plans(self) -> list[tuple[str, bytes]]:
        """Key and plan of all documents, the last one first."""
        return self._run("SELECT key, plan FROM plans ORDER BY made DESC")

    def remembered(self) -> list[Remembered]:
        """All jobs with the times of their last change."""
        rows = self._run("SELECT entry, changed FROM jobs")
        return [Remembered(msgspec.json.decode(data, type=Entry), changed, data) for data, changed in rows]

    def made_plans(self) -> list[tuple[str, bytes, float]]:
        """Key, plan and time of all documents."""
        return self._run("SELECT key, plan, made FROM plans")

    def forget(self, job: Remembered) -> bool:
        """Forget a job, unless it has changed since."""
        return bool(self._run("DELETE FROM jobs WHERE key = ? AND entry = ? RETURNING key", job.entry.key, job.data))

    def forget_plan(self, key: str) -> None:
        """Forget how a document was divided."""
        self._run("DELETE FROM plans WHERE key = ?", key)

    def files(self) -> list[KeptFile]:
        """Results and parts, and what a process that died left of one."""
        found = []
        for path in (self._directory / "blobs").iterdir():
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append(KeptFile(path.name, status.st_size, status.st_mtime))
        return found

    def load(self, name: str) -> bytes | None:
        """A result or part, if kept."""
        try:
            return self._blob(name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from error

    def save(self, name: str, data: bytes) -> None:
        """Keep a result or part."""
        try:
            write_atomically(self._blob(name), data)
        except OSError as error:
            raise self._unusable(error) from error

    def drop(self, name: str) -> None:
        """Forget a part."""
        try:
            self._blob(name).unlink(missing_ok=True)
        except OSError as error:
            raise self._unusable(error) from error

    def close(self) -> None:
        """Close the database."""
        with self._mutex:
            self._database.close()

    def _blob(self, name: str) -> Path:
        return self._directory / "blobs" / name

    def _run(self, statement: str, *values: str | bytes | float) -> list[Any]:
        """One statement, durable when it returns. Raises `StateError`."""
        try:
            with self._mutex, self._database:
                return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> StateError:
        return StateError(f"{self._directory}: {error}")


@contextlib.contextmanager
def _held(lock: FileLock) -> Iterator[None]:
    try:
        yield
    finally:
        lock.release()
