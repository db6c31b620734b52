"""The render processes: a pool that outlives any page which kills, hangs or floods one of its members."""

import asyncio
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from pebble import ProcessExpired, ProcessPool

from handler.documents import remote
from handler.documents.buffers import COLOUR, BufferStore
from handler.documents.failures import RenderFailure
from handler.documents.page import Coverage, Cut, CutRequest, OpenedDocument, PageImage, StagedDocument, Survey
from handler.documents.turns import Rank, Turns
from handler.documents.work import Drawn, PageJob, PdfEngine
from handler.errors import DocumentUnreadable, WorkerError
from handler.geometry import PixelBox
from handler.layout.detector import Pixels
from handler.schema import DocumentKind, Reason
from handler.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

_FINAL = frozenset({Reason.RENDER_TIMEOUT, Reason.RENDER_MEMORY})
"""Failures after which the second engine is not asked: it would cost as much again."""

PAGES_LOOKED_AT = range(6, 49)
"""PDFs of so many pages are searched for tables before they are read. A shorter one goes to the engine whole; of a
longer one the last pages come while the engine is still busy with the first."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a render process is asked for."""

    rank: Rank
    page: str = ""
    """The handle of the page it works on, if there is one yet."""
    owner: Path | None = None
    """Whose turn it is: the document of a drawing."""


class RenderPool:
    """The `Renderer` of the worker. A context manager: the processes live as long as the block."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._buffers = BufferStore(settings.max_page_pixels * COLOUR, spare=2 * settings.render_processes)
        self._turns = Turns(settings.render_processes)
        self._pool: ProcessPool | None = None

    def __enter__(self) -> "RenderPool":
        self._pool = self._started()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.stop()
            self._pool.join()
        self._buffers.close()

    async def open(self, document: StagedDocument) -> OpenedDocument:
        """See `Renderer.open`."""
        try:
            opened = await self._open(document, PdfEngine.MUPDF)
            return replace(opened, tables=await self._tables(document, opened.page_count))
        except DocumentUnreadable as first:
            if document.kind is not DocumentKind.PDF:
                raise
            try:
                return await self._open(document, PdfEngine.PDFIUM)
            except DocumentUnreadable:
                raise first from None

    async def render(self, document: StagedDocument, page: int, dpi: int, angle: int = 0) -> PageImage:
        """See `Renderer.render`."""
        buffer = self._buffers.take()
        job = PageJob(document, page, dpi, angle, self._settings.max_page_pixels, buffer.handle)
        kept = False
        try:
            drawn = await self._draw(job)
            kept = True
        finally:
            if not kept:
                self._buffers.discard(job.handle)
        return PageImage(
            handle=buffer.handle,
            width=drawn.width,
            height=drawn.height,
            channels=drawn.channels,
            dpi=drawn.dpi,
            ink=drawn.ink,
            angle=angle,
            warnings=drawn.warnings,
        )

    async def survey(self, image: PageImage, requests: Sequence[CutRequest]) -> Survey:
        """See `Renderer.survey`."""
        return await self._call(Task(Rank.CUT, page=image.handle), remote.survey, image, tuple(requests))

    async def cut(self, image: PageImage, requests: Sequence[CutRequest]) -> list[Cut]:
        """See `Renderer.cut`."""
        return await self._call(Task(Rank.CUT, page=image.handle), remote.cut_regions, image, tuple(requests))

    async def coverage(self, image: PageImage, boxes: Sequence[PixelBox]) -> Coverage:
        """See `Renderer.coverage`."""
        return await self._call(Task(Rank.CUT, page=image.handle), remote.find_missed, image, tuple(boxes))

    async def figure(self, image: PageImage, box: PixelBox) -> bytes:
        """See `Renderer.figure`."""
        return await self._call(Task(Rank.CUT, page=image.handle), remote.cut_figure, image, box)

    def pixels(self, image: PageImage) -> Pixels:
        """See `Renderer.pixels`."""
        return self._buffers[image.handle].pixels(image.width, image.height, image.channels)

    def release(self, image: PageImage) -> None:
        """See `Renderer.release`."""
        self._buffers.give_back(image.handle, image.nbytes)

    async def _open(self, document: StagedDocument, engine: PdfEngine) -> OpenedDocument:
        try:
            return await self._call(Task(Rank.OPEN), remote.open_document, document, engine)
        except RenderFailure as failure:
            raise DocumentUnreadable(f"the document cannot be opened: {failure.message}") from None

    async def _tables(self, document: StagedDocument, pages: int) -> frozenset[int]:
        """What a document's pages tell beforehand is worth a look, but no failure."""
        if document.kind is not DocumentKind.PDF or pages not in PAGES_LOOKED_AT:
            return frozenset()
        try:
            return await self._call(Task(Rank.OPEN), remote.pages_with_tables, document)
        except RenderFailure:
            return frozenset()

    async def _draw(self, job: PageJob) -> Drawn:
        task = Task(Rank.DRAW, job.handle, job.document.path)
        try:
            return await self._call(task, remote.draw_page, job)
        except RenderFailure as first:
            if job.document.kind is not DocumentKind.PDF or first.reason in _FINAL:
                raise
            try:
                return await self._call(task, remote.draw_page, replace(job, engine=PdfEngine.PDFIUM))
            except RenderFailure:
                raise first from None

    async def _call(self, task: Task, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in a render process; once more where the process ended and a drawn page cannot be to blame for it."""
        try:
            return await self._once(task, function, *args, **kwargs)
        except RenderFailure as failure:
            if failure.reason is not Reason.KILLED_WORKER or task.rank is Rank.DRAW:
                raise
            return await self._once(task, function, *args, **kwargs)

    async def _once(self, task: Task, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in a render process, unless cancelled before its turn. Once it has begun it goes on to its end.

        Stopping it would stop the process, and Pebble 5.2.3 stops it with whatever it has taken up meanwhile: the page
        of another job, which would then be waited for until it times out.
        """
        begun = asyncio.Event()
        work = asyncio.create_task(self._work(task, begun, function, *args, **kwargs))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            if not begun.is_set():
                work.cancel()
            raise

    async def _work(
        self, task: Task, begun: asyncio.Event, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Whatever goes wrong in the process is a `RenderFailure`, unless it concerns the whole job."""
        timeout = self._settings.render_timeout_s
        async with self._turns.turn(task.rank, task.owner):
            begun.set()
            with self._buffers.held(task.page):
                future: asyncio.Future[T] = asyncio.wrap_future(
                    self._living().schedule(function, args, kwargs, timeout=timeout)
                )
                try:
                    await asyncio.wait({future})
                finally:
                    future.cancel()  # where the event loop ends before it
        error = future.exception()
        if error is not None:
            raise _failure(error, timeout) from None
        return future.result()

    def _living(self) -> ProcessPool:
        """The pool; a new one when it has broken, as it does when a process that was idle is killed."""
        assert self._pool is not None, "used outside its context"
        if not self._pool.active:
            self._pool.stop()
            self._pool.join()
            self._pool = self._started()
        return self._pool

    def _started(self) -> ProcessPool:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(remote.PRELOADED))
        pool = ProcessPool(
            max_workers=self._settings.render_processes,
            initializer=remote.set_up,
            initargs=(self._settings.render_memory_mb * 1024 * 1024,),
            context=context,
        )
        pool.schedule(remote.ready)
        return pool


def _failure(error: BaseException, timeout: float) -> Exception:
    if isinstance(error, RenderFailure | WorkerError):
        return error
    if isinstance(error, TimeoutError):
        return RenderFailure(Reason.RENDER_TIMEOUT, f"stopped after {timeout:g} s")
    if isinstance(error, ProcessExpired | BrokenProcessPool):
        return RenderFailure(Reason.KILLED_WORKER, "the page ended the process that was drawing it")
    if isinstance(error, MemoryError) or "nsufficient memory" in str(error):
        return RenderFailure(Reason.RENDER_MEMORY, "it needs more memory than one page may use")
    return RenderFailure(Reason.RENDER_FAILED, f"{type(error).__name__}: {error}")
