"""The job contract, version 1, as the client reads it: frozen values, tolerant of what newer workers add.

Unknown keys are ignored and unknown statuses become `unknown`; nothing is lost by that, because a document keeps the
JSON it was read from. The golden files in `tests/contract` hold this model equal to the worker's.
"""

from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

CONTRACT_VERSION = "1"

BBox: TypeAlias = tuple[int, int, int, int]
JsonObject: TypeAlias = dict[str, Any]


class _Open(StrEnum):
    """A closed list today that a newer worker may extend."""

    @classmethod
    def _missing_(cls, value: object) -> "_Open | None":
        return cls.__members__.get("UNKNOWN")


class DocumentStatus(_Open):
    """Whether anything of the document is missing from the output."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    FAILED = "failed"
    UNKNOWN = "unknown"


class PageStatus(_Open):
    """What became of one page."""

    OK = "ok"
    BLANK = "blank"
    PARTIAL = "partial"
    FAILED = "failed"
    UNKNOWN = "unknown"


class RegionStatus(_Open):
    """What became of one region."""

    OK = "ok"
    TRUNCATED = "truncated"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


class Delivery(_Open):
    """How an envelope carries the result."""

    GZIP = "gzip"
    VOLUME = "volume"
    S3 = "s3"
    UNKNOWN = "unknown"


class Region(msgspec.Struct, frozen=True, kw_only=True):
    """One region of a page, in reading order."""

    index: int
    label: str
    bbox: BBox
    """x0, y0, x1, y1 in thousandths of the page's width and height."""
    bbox_px: BBox
    """The same in pixels of the rendered page."""
    text: str
    """Exactly what the engine said."""
    superseded: tuple[str, ...] = ()
    """What it said before and `text` does not hold, set aside for a better answer."""
    status: RegionStatus
    finish_reason: str | None = None
    reason: str | None = None
    message: str | None = None
    origin: str = "layout"
    score: float | None = None
    requests: int = 0
    figure: str | None = None


class PageWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Something notable about a page that lost nothing by itself."""

    reason: str
    message: str


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page asked for, whatever became of it. `page` is its number in the original document, from 1."""

    page: int
    status: PageStatus
    reason: str | None = None
    message: str | None = None
    width: int = 0
    height: int = 0
    dpi: float | None = None
    angle: int = 0
    ink: float | None = None
    coverage: float | None = None
    regions: tuple[Region, ...] = ()
    superseded: tuple[str, ...] = ()
    """What the engine said about the page in other positions than `angle`."""
    warnings: tuple[PageWarning, ...] = ()


class PageCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Pages by status."""

    requested: int = 0
    ok: int = 0
    blank: int = 0
    partial: int = 0
    failed: int = 0


class RegionCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Regions by status."""

    found: int = 0
    ok: int = 0
    truncated: int = 0
    failed: int = 0
    skipped: int = 0
    recovered: int = 0
    repetitive: int = 0
    quarantined: int = 0


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The ledger in numbers."""

    pages: PageCounts = PageCounts()
    regions: RegionCounts = RegionCounts()
    characters: int = 0


class DegradedItem(msgspec.Struct, frozen=True, kw_only=True):
    """One page or region that is not as good as it should be."""

    page: int
    region: int | None = None
    reason: str
    message: str


class Degraded(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is less than perfect; `count` is true even where `items` is cut."""

    count: int = 0
    items: tuple[DegradedItem, ...] = ()


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What the document cost the engine."""

    requests: int = 0
    retries: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Artifact(msgspec.Struct, frozen=True, kw_only=True):
    """A file that belongs to the result."""

    name: str
    media_type: str
    size: int
    sha256: str
    page: int | None = None
    region: int | None = None
    data: str | None = None
    key: str | None = None
    url: str | None = None


class ProducedBy(msgspec.Struct, frozen=True, kw_only=True):
    """Which software made this result."""

    worker: str
    engine: str
    engine_version: str | None = None
    model: str | None = None
    layout: str
    layout_version: str | None = None


class DocumentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The document as the worker opened it."""

    sha256: str
    size: int
    kind: str
    page_count: int
    pages_read: int
    filename: str | None = None
    content_key: str
    repaired: bool = False


class JobOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What a job returns."""

    schema_version: str = CONTRACT_VERSION
    status: DocumentStatus
    document: DocumentInfo | None = None
    markdown: str | None = None
    pages: tuple[Page, ...] = ()
    counts: Counts = Counts()
    degraded: Degraded = Degraded()
    usage: Usage = Usage()
    artifacts: tuple[Artifact, ...] = ()
    produced_by: ProducedBy
    idempotency_key: str | None = None
    debug: JsonObject = {}


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """Stands in for a `JobOutput` that was too large to travel as it is."""

    schema_version: str = CONTRACT_VERSION
    delivery: Delivery
    data: str | None = None
    key: str | None = None
    url: str | None = None
    size: int
    sha256: str
    status: DocumentStatus
    counts: Counts
    content_key: str | None = None
    debug: JsonObject = {}


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """What `output` holds while the job is IN_PROGRESS."""

    pages_done: int
    pages_total: int
    regions_done: int
    running: int | None = None
    queued: int | None = None


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed, in the worker's words."""

    code: str
    message: str
    retryable: bool = False
    details: JsonObject = {}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to read a document. The defaults are the worker's; only what differs from them is sent."""

    pages: str | None = None
    """Which pages, 1-based: `1-3,7,10-`. Default: all."""
    formats: tuple[str, ...] = ("markdown", "json")
    transport: str = "auto"
    """How the result is delivered: auto, inline, volume, s3."""
    dpi: int = 200
    max_tokens: int | None = None
    furniture: str = "drop"
    """Keep or drop headers, footers and page numbers in Markdown."""
    read_figures: bool = False
    checkpoint: bool = True
    password: str | None = None
    """Opens an encrypted PDF. Never stored."""

    def __repr__(self) -> str:
        """Everything but the password."""
        shown = {name: value for name, value in self.wire().items() if name != "password"}
        return f"Options({shown})"

    def wire(self) -> JsonObject:
        """The keys to send: those that differ from the contract's defaults."""
        default = Options()
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) != getattr(default, name)
        }
