"""The job contract, version 1: what a job may ask and what it gets back.

Every model is frozen and refuses unknown keys. JSON Schema, `docs/api.md` and the golden files in
`tests/contract` are made from this module; nothing else defines the wire.
"""

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic import JsonValue as JsonValue

CONTRACT_VERSION: Literal["1"] = "1"
DEGRADED_ITEMS_LIMIT = 200


class ErrorCode(StrEnum):
    """Why a whole job was refused or failed."""

    INVALID_INPUT = "invalid_input"
    UNKNOWN_KEY = "unknown_key"
    NO_SOURCE = "no_source"
    SEVERAL_SOURCES = "several_sources"
    INVALID_BASE64 = "invalid_base64"
    EMPTY_FILE = "empty_file"
    UNSUPPORTED_FORMAT = "unsupported_format"
    ARCHIVE_REFUSED = "archive_refused"
    DOCUMENT_TOO_LARGE = "document_too_large"
    TOO_MANY_PAGES = "too_many_pages"
    PAGES_OUT_OF_RANGE = "pages_out_of_range"
    PASSWORD_REQUIRED = "password_required"  # noqa: S105 - a wire code, not a secret
    PASSWORD_WRONG = "password_wrong"  # noqa: S105
    DOCUMENT_UNREADABLE = "document_unreadable"
    URL_REFUSED = "url_refused"
    PATH_REFUSED = "path_refused"
    SOURCE_NOT_FOUND = "source_not_found"
    SOURCE_UNAVAILABLE = "source_unavailable"
    NO_PAGE_READABLE = "no_page_readable"
    RESULT_TOO_LARGE = "result_too_large"
    STORAGE_UNAVAILABLE = "storage_unavailable"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    BOOT_FAILED = "boot_failed"
    INTERNAL_ERROR = "internal_error"


class Reason(StrEnum):
    """Why a page or a region is not simply `ok`, or what was done to read it all the same."""

    RENDER_FAILED = "render_failed"
    """Neither renderer could draw the page."""
    RENDER_TIMEOUT = "render_timeout"
    """Drawing the page took longer than `RENDER_TIMEOUT_S`."""
    RENDER_MEMORY = "render_memory"
    """Drawing the page needed more than `RENDER_MEMORY_MB`."""
    PAGE_DAMAGED = "page_damaged"
    """The file is damaged here; something of the page may be missing."""
    PAGE_REPAIRED = "page_repaired"
    """The page was damaged and could be repaired."""
    SECOND_RENDERER = "second_renderer"
    """The first renderer failed on this page, the second drew it."""
    PAGE_SCALED_DOWN = "page_scaled_down"
    """The page is so large that it was drawn below the resolution asked for."""
    PAGE_SCALED_UP = "page_scaled_up"
    """The page is so small that it was enlarged to be read."""
    PAGE_TURNED = "page_turned"
    """The page was turned to be read; `angle` says how far."""
    KILLED_WORKER = "killed_worker"
    """This page has ended a worker before and is not tried again."""
    LAYOUT_FAILED = "layout_failed"
    """The layout model failed; the page was read as a whole."""
    NO_LAYOUT = "no_layout"
    """The layout model saw nothing on a page that carries ink; it was read as a whole."""
    INK_OUTSIDE_REGIONS = "ink_outside_regions"
    """Ink lies outside all regions; it was read in regions of its own."""
    LOW_COVERAGE = "low_coverage"
    """A notable share of the ink lies outside every region read."""
    LOW_CONTRAST = "low_contrast"
    """The ink is so pale that the text may be guessed."""
    CROP_FAILED = "crop_failed"
    """The region could not be cut out of its page."""
    TOKEN_LIMIT = "token_limit"  # noqa: S105
    """The answer ended at the token ceiling: the text is cut."""
    UNCLOSED_TABLE = "unclosed_table"
    """The answer holds a table that was begun and not ended."""
    EMPTY_ANSWER = "empty_answer"
    """The engine said nothing about a region that carries ink."""
    ENGINE_REFUSED = "engine_refused"
    """The engine refused the request; the same one would be refused again."""
    ENGINE_ERROR = "engine_error"
    """The engine failed on this region, also when asked again."""
    ENGINE_TIMEOUT = "engine_timeout"
    """No answer within `ENGINE_REQUEST_TIMEOUT_S`, also when asked again."""
    ABORTED = "aborted"
    """The request was broken off before its answer was complete."""
    REPETITION = "repetition"
    """The answer repeats itself far beyond what the picture can hold; nothing was cut."""
    PROMPT_ECHO = "prompt_echo"
    """The answer is the prompt."""
    SCRIPT_UNSUPPORTED = "script_unsupported"
    """Much of the text is in a script the model is not made for."""
    TEXT_WITHOUT_INK = "text_without_ink"
    """The engine wrote text for an area without ink: it is quarantined, not in the Markdown."""
    FIGURE_NOT_READ = "figure_not_read"
    """A picture or chart; its text is read when the job says `read_figures`."""
    FIGURE_NOT_DELIVERED = "figure_not_delivered"
    """The picture exceeds what travels inside a result, and this worker has neither a bucket nor a volume for it."""
    OTHER = "other"
    """Something else; `message` says what."""


class Format(StrEnum):
    """Parts of the output a job may ask for."""

    MARKDOWN = "markdown"
    """`markdown`: the text, with headings, tables as HTML and formulas in `$$`."""
    JSON = "json"
    """The regions of `pages`. Without it pages have their status only."""
    FIGURES = "figures"
    """Pictures and charts as JPEG files in `artifacts`, linked from the Markdown."""
    SEARCHABLE_PDF = "searchable_pdf"
    """Reserved."""
    LAYOUT_IMAGES = "layout_images"
    """Reserved."""


RESERVED_FORMATS = frozenset({Format.SEARCHABLE_PDF, Format.LAYOUT_IMAGES})


class Transport(StrEnum):
    """How the caller wants the result delivered."""

    AUTO = "auto"
    """Inline, else zipped, else to the bucket, else to the volume: the first that fits."""
    INLINE = "inline"
    """In `output`, zipped if need be; else `result_too_large`."""
    VOLUME = "volume"
    """To the network volume, under `glmocr/results/CONTENT_KEY/`."""
    S3 = "s3"
    """To the configured bucket, with a signed address that works for an hour."""


class Furniture(StrEnum):
    """What Markdown does with headers, footers and page numbers; JSON always has them."""

    KEEP = "keep"
    """They stand where they stood on the page."""
    DROP = "drop"
    """They are left out of the Markdown."""


class DocumentKind(StrEnum):
    """What the document's bytes are."""

    PDF = "pdf"
    """Pages as the file numbers them."""
    PNG = "png"
    """One page."""
    JPEG = "jpeg"
    """One page."""
    TIFF = "tiff"
    """Every frame is a page."""
    WEBP = "webp"
    """One page; of an animation the first picture."""
    GIF = "gif"
    """One page; of an animation the first picture."""
    BMP = "bmp"
    """One page."""


class DocumentStatus(StrEnum):
    """Whether anything of the document is missing from the output."""

    COMPLETE = "complete"
    """Every page asked for was read, and every region whole."""
    PARTIAL = "partial"
    """Some page or region is `failed` or `truncated`; `degraded` names it."""
    FAILED = "failed"
    """No page could be read. Such a job ends as FAILED."""


class PageStatus(StrEnum):
    """What became of one page."""

    OK = "ok"
    """Every region was read whole, or left unread on purpose."""
    BLANK = "blank"
    """Next to no ink, and no text."""
    PARTIAL = "partial"
    """Some region is `failed` or `truncated`."""
    FAILED = "failed"
    """Nothing of it could be read; `reason` says why."""


class RegionStatus(StrEnum):
    """What became of one region."""

    OK = "ok"
    """Read to its end. `reason` may still say what is notable."""
    TRUNCATED = "truncated"
    """The text is cut, or a table in it."""
    FAILED = "failed"
    """Not read; `text` holds what was said all the same."""
    SKIPPED = "skipped"
    """Left unread (a figure), or its text is doubtful and not in the Markdown."""


class RegionOrigin(StrEnum):
    """Who said that there is something here."""

    LAYOUT = "layout"
    """The layout model."""
    RECOVERED = "recovered"
    """Ink that no region of the layout model covers."""
    WHOLE_PAGE = "whole_page"
    """Nobody: the page was read in one piece."""


class Label(StrEnum):
    """What a region is: the labels of PP-DocLayoutV3, which GLM-OCR's pipeline reads by."""

    ABSTRACT = "abstract"
    """Read as text."""
    ALGORITHM = "algorithm"
    """A listing or pseudocode; read as text."""
    ASIDE_TEXT = "aside_text"
    """Text in the margin; read as text."""
    CHART = "chart"
    """Read with `read_figures`."""
    CONTENT = "content"
    """A table of contents; read as text."""
    DISPLAY_FORMULA = "display_formula"
    """Read as a formula."""
    DOC_TITLE = "doc_title"
    """A heading of the first level in Markdown."""
    FIGURE_TITLE = "figure_title"
    """A caption of a figure, chart or table; read as text."""
    FOOTER = "footer"
    """Furniture."""
    FOOTER_IMAGE = "footer_image"
    """Furniture; read with `read_figures`."""
    FOOTNOTE = "footnote"
    """Read as text."""
    FORMULA_NUMBER = "formula_number"
    """Becomes the tag of the formula beside it."""
    HEADER = "header"
    """Furniture."""
    HEADER_IMAGE = "header_image"
    """Furniture; read with `read_figures`."""
    IMAGE = "image"
    """Read with `read_figures`."""
    INLINE_FORMULA = "inline_formula"
    """Read as a formula."""
    NUMBER = "number"
    """A page number. Furniture."""
    PARAGRAPH_TITLE = "paragraph_title"
    """A heading of the second level in Markdown."""
    REFERENCE = "reference"
    """A list of references; read as text."""
    REFERENCE_CONTENT = "reference_content"
    """One entry of it."""
    SEAL = "seal"
    """A stamp; read as text."""
    TABLE = "table"
    """Read as an HTML table."""
    TEXT = "text"
    """A paragraph."""
    VERTICAL_TEXT = "vertical_text"
    """Read as text."""
    VISION_FOOTNOTE = "vision_footnote"
    """A note below a figure or table; read as text."""


BBox: TypeAlias = tuple[int, int, int, int]


class Contract(BaseModel):
    """Base of every wire model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class JobInput(Contract):
    """One document and how to read it."""

    file_base64: Annotated[str | None, Field(repr=False)] = None
    """The document's bytes in standard base64."""
    file_url: Annotated[str | None, Field(repr=False)] = None
    """An http(s) address the worker fetches the document from."""
    volume_path: str | None = None
    """A path under the network volume."""
    s3_uri: str | None = None
    """`s3://bucket/key` in the configured bucket."""
    filename: Annotated[str | None, Field(max_length=1024)] = None
    """The document's name, echoed in the output. The bytes decide its kind."""
    password: Annotated[str | None, Field(max_length=1024, repr=False)] = None
    """Opens an encrypted PDF. Never logged, stored or echoed."""
    pages: Annotated[str | None, Field(max_length=4096)] = None
    """Which pages, 1-based: `1-3,7,10-`. Default: all. Numbers beyond the document are left out; see `page_count`."""
    formats: tuple[Format, ...] = (Format.MARKDOWN, Format.JSON)
    """What the output holds."""
    transport: Transport = Transport.AUTO
    """How the result is delivered; `auto` takes the first that fits."""
    dpi: Annotated[int, Field(ge=50, le=600)] = 200
    """Render resolution of PDF pages, dots per inch."""
    max_tokens: Annotated[int | None, Field(ge=16, le=131072)] = None
    """Ceiling of tokens per region; default `OCR_MAX_TOKENS`."""
    furniture: Furniture = Furniture.DROP
    """Keep or drop headers, footers and page numbers in Markdown."""
    read_figures: bool = False
    """Read text inside images and charts too."""
    checkpoint: bool = True
    """Keep finished pages on the volume so that a repeated job continues."""
    idempotency_key: Annotated[str | None, Field(max_length=256)] = None
    """Echoed in the output; never used to look anything up."""
    warmup: bool = False
    """No document: run the bundled page through the whole chain."""
    probe: bool = False
    """No document: return `debug` only."""


SOURCE_KEYS = ("file_base64", "file_url", "volume_path", "s3_uri")
RESULT_OPTIONS = ("pages", "formats", "dpi", "max_tokens", "furniture", "read_figures")
"""The options that change the result and so belong to the content key."""


class RegionResult(Contract):
    """One region of a page."""

    index: int
    """Position in reading order within the page, from 0."""
    label: Label
    """What kind of thing it is."""
    bbox: BBox
    """x0, y0, x1, y1 in thousandths of the page's width and height, turned by the page's `angle`."""
    bbox_px: BBox
    """The same in pixels of the rendered page."""
    text: str
    """Exactly what the engine said."""
    superseded: tuple[str, ...] = ()
    """What it said about this region before, and `text` does not hold: answers cut, broken off or in a loop, set aside
    for a better one. Neither in the Markdown nor in `counts`."""
    status: RegionStatus
    """What became of it."""
    finish_reason: str | None = None
    """The engine's own word: stop, length, abort; null when it was not asked."""
    reason: Reason | None = None
    """Why the status is not ok, or what is notable about an ok one."""
    message: str | None = None
    """The reason in words, with the last error of the engine if there was one."""
    origin: RegionOrigin = RegionOrigin.LAYOUT
    """Who said that it is there."""
    score: float | None = None
    """The layout model's confidence, 0 to 1."""
    requests: int = 0
    """How many requests were sent for this region."""
    figure: str | None = None
    """`name` of the artifact that holds this region's picture."""


class PageWarning(Contract):
    """Something notable about a page that lost nothing by itself."""

    reason: Reason
    """What kind of thing."""
    message: str
    """In words."""


class PageResult(Contract):
    """One page asked for, whatever became of it."""

    page: int
    """Number in the original document, from 1."""
    status: PageStatus
    """What became of it."""
    reason: Reason | None = None
    """Why the status is not ok or blank."""
    message: str | None = None
    """The reason in words."""
    width: int = 0
    """Pixels of the rendered page, turned by `angle`; 0 when it could not be rendered."""
    height: int = 0
    """As `width`."""
    dpi: float | None = None
    """Real resolution of the render; null for images, which have none of ours."""
    angle: int = 0
    """Degrees the page was turned clockwise to be read: 0, 90, 180, 270."""
    ink: float | None = None
    """Share of the page's pixels that carry ink, 0 to 1."""
    coverage: float | None = None
    """Share of the ink that lies inside regions, 0 to 1."""
    regions: tuple[RegionResult, ...] = ()
    """In reading order; empty where `formats` lacks `json`."""
    superseded: tuple[str, ...] = ()
    """What the engine said about the page in other positions than `angle`, set aside because it is less."""
    warnings: tuple[PageWarning, ...] = ()
    """What is notable beside its status."""


class PageCounts(Contract):
    """Pages by status; `requested` is their sum."""

    requested: int = 0
    """Pages asked for."""
    ok: int = 0
    """Read."""
    blank: int = 0
    """Read, without text."""
    partial: int = 0
    """Read in part."""
    failed: int = 0
    """Not read."""


class RegionCounts(Contract):
    """Regions by status; `found` is their sum. The rest counts regions already in one of them."""

    found: int = 0
    """By layout, by their ink, or as whole pages."""
    ok: int = 0
    """Read to their end."""
    truncated: int = 0
    """Cut."""
    failed: int = 0
    """Not read."""
    skipped: int = 0
    """Left unread, or in quarantine."""
    recovered: int = 0
    """Of `origin` `recovered`."""
    repetitive: int = 0
    """With the reason `repetition`."""
    quarantined: int = 0
    """With the reason `text_without_ink`."""


class Counts(Contract):
    """The ledger in numbers."""

    pages: PageCounts = PageCounts()
    """Pages by status."""
    regions: RegionCounts = RegionCounts()
    """Regions by status."""
    characters: int = 0
    """Of the text of all regions that were not skipped."""


class DegradedItem(Contract):
    """One page or region that is not as good as it should be."""

    page: int
    """Number in the original document."""
    region: int | None = None
    """`index` of the region; null for the page itself."""
    reason: Reason
    """What kind of thing."""
    message: str
    """In words."""


class Degraded(Contract):
    """Everything that is less than perfect; `count` is true even where `items` is cut at its limit."""

    count: int = 0
    """How many there are."""
    items: tuple[DegradedItem, ...] = ()
    """Losses first, then by page; 200 at most."""


class Usage(Contract):
    """What the document cost the engine."""

    requests: int = 0
    """Sent to the engine."""
    retries: int = 0
    """Of those, repetitions."""
    prompt_tokens: int = 0
    """Pictures and prompts."""
    completion_tokens: int = 0
    """Answers."""


class Artifact(Contract):
    """A file that belongs to the result. Written to `name` beside the Markdown, it is where the Markdown links it."""

    name: str
    """A relative path, such as `figures/page-0001-figure-003.jpg`."""
    media_type: str
    """Such as `image/jpeg`."""
    size: int
    """Bytes."""
    sha256: str
    """Of the bytes."""
    page: int | None = None
    """Number in the original document."""
    region: int | None = None
    """`index` of the region it shows."""
    data: str | None = None
    """base64 when it travels inline."""
    key: str | None = None
    """Where it lies on the volume or in the bucket."""
    url: str | None = None
    """A short-lived address when the storage can sign one."""


class ProducedBy(Contract):
    """Which software made this result."""

    worker: str
    """Version of this worker."""
    engine: str
    """`sglang`, `rapidocr`, `transformers` or `external`."""
    engine_version: str | None = None
    """As the engine says."""
    model: str | None = None
    """As the engine serves it."""
    layout: str
    """`pp_doclayout_v3`, `cdla` or `whole_page`."""
    layout_version: str | None = None
    """Revision of the layout model."""


class DocumentInfo(Contract):
    """The document as it was opened."""

    sha256: str
    """Of the bytes after unpacking."""
    size: int
    """Bytes after unpacking."""
    kind: DocumentKind
    """By its bytes."""
    page_count: int
    """Pages of the whole document."""
    pages_read: int
    """Pages of the output that are not `failed`."""
    filename: str | None = None
    """As the job gave it, or as its place or archive names it."""
    content_key: str
    """Names the document and the options that change the result; results are stored under it."""
    repaired: bool = False
    """The file is damaged and was opened by repairing it."""


class JobOutput(Contract):
    """What a job returns."""

    schema_version: Literal["1"] = CONTRACT_VERSION
    """Of this contract."""
    status: DocumentStatus
    """What became of the document."""
    document: DocumentInfo | None = None
    """Null for `warmup` and `probe`."""
    markdown: str | None = None
    """Null where `formats` lacks `markdown`."""
    pages: tuple[PageResult, ...] = ()
    """Every page asked for, in order, whatever became of it."""
    counts: Counts = Counts()
    """Pages, regions and characters, added up."""
    degraded: Degraded = Degraded()
    """Everything that is less than perfect."""
    usage: Usage = Usage()
    """What it cost the engine."""
    artifacts: tuple[Artifact, ...] = ()
    """Figures, where `formats` has `figures`."""
    produced_by: ProducedBy
    """Which software made it."""
    idempotency_key: str | None = None
    """As the job gave it."""
    debug: dict[str, JsonValue] = {}
    """Timings, engine, GPU, patches, settings without secrets, log lines of this job."""


class Delivery(StrEnum):
    """How an envelope carries the result."""

    GZIP = "gzip"
    """In `data`."""
    VOLUME = "volume"
    """On the network volume, under `key`."""
    S3 = "s3"
    """In the bucket, under `key` and at `url`."""


class Envelope(Contract):
    """Stands in for a `JobOutput` that is too large to travel as it is."""

    schema_version: Literal["1"] = CONTRACT_VERSION
    """Of this contract."""
    delivery: Delivery
    """Where the result is."""
    data: str | None = None
    """gzip: base64 of the gzipped JSON of the `JobOutput`."""
    key: str | None = None
    """volume, s3: where the JSON lies."""
    url: str | None = None
    """s3: a presigned address, short-lived."""
    size: int
    """Bytes of the JSON of the `JobOutput`."""
    sha256: str
    """Of those bytes."""
    status: DocumentStatus
    """As in the `JobOutput`."""
    counts: Counts
    """As in the `JobOutput`."""
    content_key: str | None = None
    """As in `document`."""
    debug: dict[str, JsonValue] = {}
    """As in the `JobOutput`."""


class Progress(Contract):
    """What `output` holds while the job is IN_PROGRESS."""

    pages_done: int
    """Pages with their entry."""
    pages_total: int
    """Pages asked for."""
    regions_done: int
    """Regions of those pages."""
    running: int | None = None
    """Requests running in the engine, of all jobs of this worker."""
    queued: int | None = None
    """Requests waiting in the engine."""


class ErrorInfo(Contract):
    """RunPod's `error`, as a JSON string of this."""

    code: ErrorCode
    """What kind of failure."""
    message: str
    """What was wrong and what to do."""
    retryable: bool
    """Whether the same job may succeed later or on another worker."""
    details: dict[str, JsonValue] = {}
    """Figures that belong to the message."""
