"""One document: stage it, read its pages, keep the ledger. Knows neither RunPod nor any engine or layout model.

Every page asked for gets an entry. What was finished by an earlier attempt is taken from the checkpoint, what a
page cannot do becomes that page's status, and only what concerns the whole document ends it.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass, field

from handler.assembly import markdown
from handler.attempts import Ending
from handler.checkpoint import Checkpoint, Checkpoints, History
from handler.company import Care, Company
from handler.documents.complaints import MESSAGES_LIMIT
from handler.documents.page import OpenedDocument, StagedDocument
from handler.errors import EngineUnavailable, TooManyPages, UnsupportedFormat, WorkerError
from handler.identity import content_key
from handler.job_folder import job_folder
from handler.ledger import counts_of, degraded_of, status_of
from handler.page_outcome import Figure, PageOutcome, failed_page, sum_usages
from handler.page_ranges import select_pages
from handler.pages import PageReader, ReadOptions
from handler.progress import ProgressMeter
from handler.schema import (
    RESERVED_FORMATS,
    DocumentInfo,
    Format,
    JobInput,
    JobOutput,
    PageResult,
    PageStatus,
    ProducedBy,
    Reason,
)
from handler.settings import Settings
from handler.sources.staging import stage
from handler.stages import Stage, Stages

log = logging.getLogger(__name__)

AUTOMATIC_PAGES_IN_FLIGHT = 48
"""Pages of one document between rendering and their last answer. Pixels are bounded by `PAGE_MEMORY_MB` across all
documents; a page that waits for answers only holds its JPEGs, about 0.6 MB. While the engine writes a page-wide table
it reads about 40 other pages, so that many must be known for the last tables to be sent in time."""


@dataclass(frozen=True, slots=True)
class DocumentOutcome:
    """A read document: the output without `debug` and artifacts, and the figures that belong to it."""

    output: JobOutput
    figures: tuple[Figure, ...] = ()
    deaths: int = 0
    """How many earlier attempts at this document ended with their worker."""
    resumed_pages: int = 0


@dataclass(frozen=True)
class DocumentReader:
    """Reads whole documents. One per process; any number of documents at once."""

    pages: PageReader
    checkpoints: Checkpoints
    settings: Settings
    produced_by: ProducedBy
    company: Company = field(default_factory=Company)

    async def read(self, job: JobInput, job_id: str, meter: ProgressMeter, stages: Stages) -> DocumentOutcome:
        """Read one document. Raises the `WorkerError` that ends the whole job; pages never raise."""
        refuse_reserved(job)
        with job_folder() as folder:
            with stages.measure(Stage.FETCH):
                document = await stage(job, self.settings, folder)
            with stages.measure(Stage.OPEN):
                opened = await self.pages.renderer.open(document)
            for warning in opened.warnings[:MESSAGES_LIMIT]:
                log.warning("while opening the document: %s", warning)
            numbers = self._numbers(job, opened)
            meter.pages_total = len(numbers)
            key = content_key(document.sha256, job)
            checkpoint = self.checkpoints.of(key, job_id, wanted=job.checkpoint)
            history = await checkpoint.open()
            pages = self.pages.remembering(checkpoint)
            reading = _Reading(pages, self.company, document, _options(job), checkpoint, history, meter, stages)
            outcomes = await reading.read(_tables_first(numbers, opened.tables), self._pages_in_flight())
        with stages.measure(Stage.ASSEMBLE):
            in_order = [outcomes[number] for number in numbers]
            return self._outcome(job, document, opened, key, in_order, history)

    def _numbers(self, job: JobInput, opened: OpenedDocument) -> tuple[int, ...]:
        numbers = select_pages(job.pages, opened.page_count)
        limit = self.settings.max_pages
        if len(numbers) > limit:
            message = (
                f"{len(numbers)} pages asked for, this worker reads at most {limit} in a job; ask for fewer with pages"
            )
            raise TooManyPages(message, pages=len(numbers), limit=limit)
        return numbers

    def _pages_in_flight(self) -> int:
        return self.settings.glmocr_pipeline_max_workers or AUTOMATIC_PAGES_IN_FLIGHT

    def _outcome(
        self,
        job: JobInput,
        document: StagedDocument,
        opened: OpenedDocument,
        key: str,
        outcomes: Sequence[PageOutcome],
        history: History,
    ) -> DocumentOutcome:
        pages = tuple(outcome.result for outcome in outcomes)
        output = JobOutput(
            status=status_of(pages),
            document=_described(document, opened, key, pages),
            markdown=markdown(pages, furniture=job.furniture) if Format.MARKDOWN in job.formats else None,
            pages=pages if Format.JSON in job.formats else tuple(_without_regions(pages)),
            counts=counts_of(pages),
            degraded=degraded_of(pages),
            usage=sum_usages(outcome.usage for outcome in outcomes),
            produced_by=self.produced_by,
            idempotency_key=job.idempotency_key,
        )
        figures = tuple(figure for outcome in outcomes for figure in outcome.figures)
        return DocumentOutcome(output, figures, history.deaths, len(history.done.keys() & {p.page for p in pages}))


@dataclass(frozen=True)
class _Reading:
    """The reading of one document's pages."""

    pages: PageReader
    company: Company
    document: StagedDocument
    options: ReadOptions
    checkpoint: Checkpoint
    history: History
    meter: ProgressMeter
    stages: Stages
    _in_order: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, numbers: Sequence[int], in_flight: int) -> dict[int, PageOutcome]:
        """The outcome of each page, begun in the order of `numbers`. However it ends, the attempt is closed."""
        ending = Ending.LEFT
        try:
            outcomes = await self._read(numbers, in_flight)
            ending = Ending.DONE
        except EngineUnavailable:
            ending = Ending.ENGINE_LOST
            raise
        finally:
            await asyncio.shield(self.checkpoint.close(ending))
        return outcomes

    async def _read(self, numbers: Sequence[int], in_flight: int) -> dict[int, PageOutcome]:
        outcomes = self._known(numbers)
        for outcome in outcomes.values():
            self.meter.page_done(len(outcome.result.regions))
        by_care: dict[Care, list[int]] = {care: [] for care in Care}
        for number in numbers:
            if number not in outcomes:
                by_care[self.history.care.get(number, Care.TOGETHER)].append(number)
        for care, pages in by_care.items():
            remaining = iter(pages)
            works = min(in_flight, len(pages))
            await _first_error_of([self._work(remaining, care, outcomes) for _ in range(works)])
        return outcomes

    def _known(self, numbers: Sequence[int]) -> dict[int, PageOutcome]:
        known = {n: self.history.done[n] for n in numbers if n in self.history.done}
        for number in self.history.killers & set(numbers):
            known[number] = failed_page(number, Reason.KILLED_WORKER, "reading this page ended its worker repeatedly")
        return known

    async def _work(self, numbers: Iterator[int], care: Care, outcomes: dict[int, PageOutcome]) -> None:
        for number in numbers:
            outcomes[number] = await self._read_page(number, care)

    async def _read_page(self, number: int, care: Care) -> PageOutcome:
        async with self.company.reading(care):
            async with self._in_order:  # what begins first is drawn first
                await self.checkpoint.begin(number, care)
            read = self.pages.read(self.document, number, self.options, self.stages)
            [answer] = await asyncio.gather(read, return_exceptions=True)
            outcome = answer if isinstance(answer, PageOutcome) else _failure(number, answer)
            await self.checkpoint.end(number, outcome)
        self.meter.page_done(len(outcome.result.regions))
        return outcome


def _tables_first(numbers: Sequence[int], tables: frozenset[int]) -> list[int]:
    """The order in which pages are begun. The first stays first: its regions are what the engine begins with."""
    return [*numbers[:1], *sorted(numbers[1:], key=lambda number: number not in tables)]


def refuse_reserved(job: JobInput) -> None:
    """Formats the contract names but version 1 does not make."""
    reserved = sorted(RESERVED_FORMATS & set(job.formats))
    if reserved:
        raise UnsupportedFormat(f"formats: {', '.join(reserved)} is reserved and not made in version 1")


def _described(document: StagedDocument, opened: OpenedDocument, key: str, pages: Sequence[PageResult]) -> DocumentInfo:
    return DocumentInfo(
        sha256=document.sha256,
        size=document.size,
        kind=document.kind,
        page_count=opened.page_count,
        pages_read=sum(page.status is not PageStatus.FAILED for page in pages),
        filename=document.filename,
        content_key=key,
        repaired=opened.repaired,
    )


def _options(job: JobInput) -> ReadOptions:
    return ReadOptions(job.dpi, job.max_tokens, job.read_figures, cut_figures=Format.FIGURES in job.formats)


def _without_regions(pages: Sequence[PageResult]) -> Iterator[PageResult]:
    return (page.model_copy(update={"regions": ()}) for page in pages)


def _failure(number: int, error: BaseException) -> PageOutcome:
    """An unforeseen error of one page stays with that page; what concerns the whole job goes on."""
    for leaf in _leaves(error):
        if isinstance(leaf, WorkerError) or not isinstance(leaf, Exception):
            raise leaf
    log.error("page %s failed", number, exc_info=error)
    return failed_page(number, Reason.OTHER, f"unforeseen: {type(error).__name__}")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def _first_error_of(works: Sequence[Coroutine[None, None, None]]) -> None:
    """Run all; the first error cancels the rest and is raised as itself, not as a group."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as errors:
        raise next(_leaves(errors)) from None
