"""Are these the files the manifest names?

A full check hashes every byte. What passed is written to a marker beside the files, with their sizes and times, so
that later boots need not read gigabytes again; a file that changed since fails the marker and is hashed anew.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from handler.errors import ModelError
from handler.models.manifest import ModelEntry, ModelFile

MARKER = ".verified.json"


class Fingerprint(TypedDict):
    """A file as it was when it was hashed. Whole seconds: image layers keep no finer time."""

    size: int
    mtime: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a full check found: a fingerprint per file, or what is wrong."""

    files: Mapping[str, Fingerprint]
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.problems


def sha256_of(path: Path) -> str:
    """Hash of the file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_file(directory: Path, file: ModelFile) -> Fingerprint:
    """Size and hash of one file. Raises `ModelError` naming the file if it is missing or another."""
    path = directory / file.path
    try:
        stat = path.stat()
    except OSError as error:
        raise ModelError(f"{file.path} is missing") from error
    if file.size is not None and stat.st_size != file.size:
        raise ModelError(f"{file.path} has {stat.st_size} bytes, not {file.size}")
    digest = sha256_of(path)
    if file.sha256 is not None and digest != file.sha256:
        raise ModelError(f"{file.path} has sha256 {digest[:12]}..., not {file.sha256[:12]}...")
    return {"size": stat.st_size, "mtime": int(stat.st_mtime), "sha256": digest}


def check(directory: Path, entry: ModelEntry) -> Verdict:
    """Hash every file of the model."""
    found: dict[str, Fingerprint] = {}
    problems: list[str] = []
    for file in entry.files:
        try:
            found[file.path] = check_file(directory, file)
        except ModelError as error:
            problems.append(error.message)
    return Verdict(found, tuple(problems))


def write_marker(directory: Path, verdict: Verdict) -> None:
    """Record a passed check beside the files."""
    staged = directory / f"{MARKER}.new"
    staged.write_text(json.dumps(verdict.files, indent=1, sort_keys=True), encoding="utf-8")
    staged.rename(directory / MARKER)


def marker_holds(directory: Path, entry: ModelEntry) -> bool:
    """True if every file passed a full check before and has not changed since."""
    try:
        recorded: dict[str, Fingerprint] = json.loads((directory / MARKER).read_text(encoding="utf-8"))
        return all(_unchanged(directory / file.path, file, recorded[file.path]) for file in entry.files)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _unchanged(path: Path, file: ModelFile, recorded: Fingerprint) -> bool:
    stat = path.stat()
    return (
        (stat.st_size, int(stat.st_mtime)) == (recorded["size"], recorded["mtime"])
        and file.sha256 in (None, recorded["sha256"])
        and file.size in (None, recorded["size"])
    )


def find_problems(directory: Path, entry: ModelEntry) -> tuple[str, ...]:
    """What is wrong with this directory; nothing if it may be loaded. Cheap where the marker holds."""
    if marker_holds(directory, entry):
        return ()
    verdict = check(directory, entry)
    if verdict.ok:
        _try_to_mark(directory, verdict)
    return verdict.problems


def _try_to_mark(directory: Path, verdict: Verdict) -> None:
    try:
        write_marker(directory, verdict)
    except OSError:
        return  # a read-only place: it is hashed again at the next boot
