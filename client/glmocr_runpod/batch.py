"""Many files into one directory, resumable: `manifest.jsonl` has a line for each file that was settled."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from glmocr_runpod.contract import Counts, Options
from glmocr_runpod.disk import writing
from glmocr_runpod.document import Document, writable
from glmocr_runpod.effects import Flow, Together, call
from glmocr_runpod.errors import (
    ClientError,
    Closed,
    ConfigError,
    Denied,
    OutputError,
    SourceError,
    StateError,
    Unreachable,
)
from glmocr_runpod.identity import content_key, sha256
from glmocr_runpod.sources import read_source

MANIFEST = "manifest.jsonl"
ENDS_ALL = (Denied, ConfigError, StateError, OutputError, Closed, Unreachable)
"""Errors that every further file would meet as well."""


class BatchItem(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one file."""

    path: str
    content_key: str
    """Of the file's bytes and the options: a file that changed is read anew."""
    status: str
    """The document's status, or `error`."""
    stem: str
    """The results' name in the directory."""
    code: str | None = None
    message: str | None = None
    counts: Counts = Counts()
    degraded: int = 0
    seconds: float = 0.0
    execution_ms: int = 0
    reused: bool = False
    """Settled by an earlier run of the batch."""

    @property
    def ok(self) -> bool:
        """Whether there is a result."""
        return self.status != "error"


class Manifest:
    """The lines written so far; the last one of a file counts. A torn last line is a file that was not settled."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._items = {item.path: item for item in _lines(path)}

    def get(self, path: Path) -> BatchItem | None:
        """What an earlier run wrote about this file."""
        return self._items.get(str(path))

    @property
    def stems(self) -> dict[str, str]:
        """The names that earlier runs gave to files' results."""
        return {path: item.stem for path, item in self._items.items()}

    def add(self, item: BatchItem) -> None:
        """One more line, on disk when this returns."""
        with writing(self._path), self._lock, self._path.open("ab") as file:
            if file.tell() and not _ends_in_newline(self._path):
                file.write(b"\n")
            file.write(msgspec.json.encode(item) + b"\n")
            self._items[item.path] = item


def read_batch(
    parse: Callable[[Path], Flow[Document]],
    paths: Sequence[Path],
    directory: Path,
    options: Options,
    concurrency: int,
    done: Callable[[BatchItem], Any] | None = None,
) -> Flow[list[BatchItem]]:
    """Every file's item, in the order given. Raises what no other file could escape either, after the others end."""
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    manifest = Manifest(directory / MANIFEST)
    work = _Batch(parse, directory, options, manifest, done)
    names = stems(dict.fromkeys(paths), manifest.stems)
    outcomes: list[BatchItem | ClientError] = yield Together([work.one(*pair) for pair in names.items()], concurrency)
    errors = [outcome for outcome in outcomes if isinstance(outcome, ClientError)]
    if errors:
        raise next((error for error in errors if not isinstance(error, Closed)), errors[0])
    items = {Path(item.path): item for item in outcomes if isinstance(item, BatchItem)}
    return [items[path] for path in paths]


@dataclass(slots=True)
class _Batch:
    parse: Callable[[Path], Flow[Document]]
    directory: Path
    options: Options
    manifest: Manifest
    done: Callable[[BatchItem], Any] | None
    ended: bool = False
    """An error was met that every other file would meet: nothing new is begun."""

    def one(self, path: Path, stem: str) -> Flow[BatchItem]:
        """One file, from the manifest or read."""
        if self.ended:
            raise Closed
        try:
            item = yield from call(lambda: _settled(self.manifest.get(path), path, self.options, self.directory))
            if item is None:
                item = yield from self._read(path, stem)
                self.manifest.add(item)
        except ENDS_ALL:
            self.ended = True
            raise
        if self.done:
            self.done(item)
        return item

    def _read(self, path: Path, stem: str) -> Flow[BatchItem]:
        try:
            key = yield from call(lambda: _key(path, self.options))
            document = yield from self.parse(path)
            yield from call(lambda: document.save(self.directory, stem))
        except ENDS_ALL:
            raise
        except ClientError as error:
            return BatchItem(
                path=str(path), content_key="", status="error", stem=stem, code=error.word, message=error.message
            )
        return BatchItem(
            path=str(path),
            content_key=key,
            status=document.status.value,
            stem=stem,
            counts=document.output.counts,
            degraded=document.output.degraded.count,
            seconds=round(document.seconds, 3),
            execution_ms=document.execution_ms,
        )


def stems(paths: Iterable[Path], known: Mapping[str, str] = MappingProxyType({})) -> dict[Path, str]:
    """A name of its own for each file: its stem, with a piece of its path's digest where two would be the same.

    `known`: names by path that were given before. Files keep theirs, for their results lie there.
    """
    chosen: dict[Path, str] = {}
    taken = {stem.casefold() for stem in known.values()}
    for path in paths:
        stem = writable(known.get(str(path), path.stem))
        if str(path) not in known and stem.casefold() in taken:
            stem = writable(f"{stem}-{sha256(str(path).encode(errors='surrogateescape'))[:8]}")
        chosen[path] = stem
        taken.add(stem.casefold())
    return chosen


def _settled(item: BatchItem | None, path: Path, options: Options, directory: Path) -> BatchItem | None:
    """The earlier run's item, if the file is the same and its result still lies there."""
    if item is None or not item.ok:
        return None
    try:
        key = _key(path, options)
    except SourceError:
        return None
    if item.content_key != key or not (directory / f"{item.stem}.json").exists():
        return None
    return msgspec.structs.replace(item, reused=True)


def _key(path: Path, options: Options) -> str:
    return content_key(read_source(path).digest, options)


def _lines(path: Path) -> list[BatchItem]:
    if not path.exists():
        return []
    items = []
    for line in path.read_bytes().splitlines():
        try:
            items.append(msgspec.json.decode(line, type=BatchItem))
        except msgspec.MsgspecError:
            continue
    return items


def _ends_in_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"
