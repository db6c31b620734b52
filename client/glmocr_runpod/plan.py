"""How one document is divided into jobs. Written before the first of them is sent and kept until all are read, for the
jobs' content keys rest on it."""

from enum import StrEnum

import msgspec


class Carry(StrEnum):
    """How a job's document gets to the worker."""

    INLINE = "inline"
    GZIP = "gzip"
    UPLOAD = "upload"
    URL = "url"
    NONE = "none"
    """No way carries it; its pages are `failed` in the result, with the reason."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One job of a document."""

    content_key: str
    digest: str
    """Of the part's bytes; of the document's where the part is a selection of its pages."""
    carry: Carry
    pages: str | None
    """The job's `pages` option."""
    numbers: tuple[int, ...] | None = None
    """The original number of each page, where the part is a file of its own; None where numbers need no change."""
    covers: tuple[int, ...] = ()
    """The original pages this part answers for; empty when not counted."""
    why: str = ""
    """Why nothing carries it."""
    kept: bool = False
    """Its bytes are kept in the ledger: they are not the document's."""


class TransportStep(msgspec.Struct, frozen=True, kw_only=True):
    """One thing done, or not done and why, to carry a document."""

    step: str
    detail: str
    facts: dict[str, int | float | str] = {}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one document."""

    name: str
    digest: str
    size: int
    """Bytes of the document; 0 for one the worker fetches."""
    content_key: str
    parts: tuple[Part, ...]
    steps: tuple[TransportStep, ...] = ()
    page_count: int | None = None
    """Of the whole document, where the client can count."""

    @property
    def sent(self) -> tuple[Part, ...]:
        """The parts that are jobs."""
        return tuple(part for part in self.parts if part.carry is not Carry.NONE)

    @property
    def whole(self) -> bool:
        """One job of the document itself: its result needs no merging."""
        return len(self.parts) == 1 and self.parts[0].numbers is None
