"""A document that was read."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import msgspec

from glmocr_runpod.contract import Artifact, DocumentStatus, JobOutput, Page, Region
from glmocr_runpod.delivery import read_result
from glmocr_runpod.disk import write_atomically, writing
from glmocr_runpod.errors import Degraded
from glmocr_runpod.identity import sha256

FIGURES = "figures/"
"""Where the worker's names put figures. Documents saved side by side have figures of the same names."""


STEM_BYTES = 200
"""A file system takes names of 255 bytes; endings and the staged file's name come on top."""


def writable(stem: str) -> str:
    """A stem that leaves room for endings: a long one cut, with a piece of its digest."""
    data = stem.encode(errors="surrogateescape")
    if len(data) <= STEM_BYTES:
        return stem
    return f"{data[: STEM_BYTES - 9].decode(errors='ignore')}-{sha256(data)[:8]}"


@dataclass(frozen=True, slots=True)
class Document:
    """The result of one document. `output` is its typed form, `data` the JSON it was read from, whole."""

    name: str
    output: JobOutput
    data: bytes = field(repr=False)
    seconds: float = 0.0
    """From the call to the result, as this client waited."""
    execution_ms: int = 0
    """What the platform ran for it, all its jobs and their repetitions."""

    @classmethod
    def from_json(cls, name: str, data: bytes, seconds: float = 0.0, execution_ms: int = 0) -> "Document":
        """Read a result. Raises `Undelivered` when it is not one."""
        return cls(name, read_result(data), data, seconds, execution_ms)

    @property
    def status(self) -> DocumentStatus:
        """Whether anything is missing."""
        return self.output.status

    @property
    def markdown(self) -> str:
        """The document as Markdown; empty when that was not asked for."""
        return self.output.markdown or ""

    @property
    def pages(self) -> tuple[Page, ...]:
        """Every page asked for, by its number in the original document."""
        return self.output.pages

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions of all pages in reading order."""
        return tuple(region for page in self.pages for region in page.regions)

    @property
    def transport(self) -> tuple[Mapping[str, Any], ...]:
        """What the client did to carry the document: packed, divided, uploaded, shrunk."""
        steps = self.output.debug.get("client", {}).get("transport", [])
        return tuple(MappingProxyType(step) for step in steps)

    @property
    def absent(self) -> tuple[Artifact, ...]:
        """Files of the result that could not be fetched from where the worker left them, or came damaged."""
        return tuple(artifact for artifact in self.output.artifacts if _content(artifact) is None)

    def raise_if_degraded(self) -> None:
        """Raise `Degraded` unless every page and region is as good as it should be, and every file is there."""
        if self.status is DocumentStatus.COMPLETE and self.output.degraded.count == 0 and not self.absent:
            return
        worst = [f"page {item.page}: {item.reason}" for item in self.output.degraded.items[:5]]
        summary = f"{self.name} is {self.status}, {self.output.degraded.count} pages or regions are degraded"
        missing = [f"{len(self.absent)} files could not be fetched: {self.absent[0].name}"] if self.absent else []
        raise Degraded("; ".join([summary, *worst, *missing]), items=self.output.degraded.count)

    def save(self, directory: str | Path, stem: str | None = None) -> list[Path]:
        """Write NAME.md, NAME.json and figures in NAME.figures; each file is whole or not there at all.

        The JSON comes last: where it is, everything else is. Raises `OutputError`.
        """
        folder = Path(directory)
        stem = writable(stem or Path(self.name).stem or "document")
        written = []
        for artifact in self.output.artifacts:
            content = _content(artifact)
            if content is not None:
                written.append(_write(folder / _inside(_beside(stem, artifact.name)), content))
        if self.output.markdown is not None:
            text = self.output.markdown.replace(f"]({FIGURES}", f"]({quote(_beside(stem, FIGURES))}")
            written.append(_write(folder / f"{stem}.md", text.encode()))
        pretty = msgspec.json.format(self.data, indent=2)
        written.append(_write(folder / f"{stem}.json", pretty))
        return written


def _content(artifact: Artifact) -> bytes | None:
    """Its bytes, if they are here and the ones that its digest names."""
    try:
        content = base64.b64decode(artifact.data or "", validate=True)
    except binascii.Error:
        return None
    return content if sha256(content) == artifact.sha256 else None


def _beside(stem: str, name: str) -> str:
    """A name of the worker's as a path beside this document's Markdown, apart from other documents' files."""
    return f"{stem}.{FIGURES}{name.removeprefix(FIGURES)}"


def _write(path: Path, data: bytes) -> Path:
    with writing(path):
        write_atomically(path, data)
    return path


def _inside(name: str) -> Path:
    """A worker's name for a file, without any way out of the directory."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in ("/", "..", ".")]
    return Path(*parts) if parts else Path("artifact")
