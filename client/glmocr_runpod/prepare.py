"""The transport ladder: the cheapest and least lossy way to carry a document through the platform's limit.

As it is -> gzip -> upload, where storage is configured -> cut by pages -> Ghostscript for a single page. Flows only.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from glmocr_runpod import pdf
from glmocr_runpod.contract import Options
from glmocr_runpod.effects import Flow, call
from glmocr_runpod.errors import ConfigError, MissingExtra, TooLarge
from glmocr_runpod.events import Noted, Observer
from glmocr_runpod.identity import content_key, sha256
from glmocr_runpod.kit import Kit
from glmocr_runpod.packing import ROOM, gzipped, inline_size, is_archive
from glmocr_runpod.pages import beyond, chunks, select, spell
from glmocr_runpod.plan import Carry, Part, Plan, TransportStep
from glmocr_runpod.sources import Source


@dataclass(slots=True)
class _Work:
    """One document on its way up the ladder."""

    kit: Kit
    source: Source
    data: bytes = field(repr=False)
    options: Options
    observer: Observer
    keep: Callable[[str, bytes], None]
    steps: list[TransportStep] = field(default_factory=list)

    def note(self, step: str, detail: str, *, loud: bool = False, **facts: int | float | str) -> None:
        self.steps.append(TransportStep(step=step, detail=detail, facts=facts))
        self.observer(Noted(step, detail, loud, facts))

    def fits(self, data: bytes) -> bool:
        return inline_size(data) <= self.kit.body_limit - ROOM


def prepare(
    kit: Kit, source: Source, options: Options, *, observer: Observer, keep: Callable[[str, bytes], None]
) -> Flow[Plan]:
    """How to send the document. `keep` gets the digest and the bytes of each part that is a file of its own.

    Raises `TooLarge` naming every way that was tried.
    """
    key = content_key(source.digest, options)
    plan = Plan(name=source.name, digest=source.digest, size=len(source.data or b""), content_key=key, parts=())
    if source.data is None:
        part = Part(content_key=key, digest=source.digest, carry=Carry.URL, pages=options.pages)
        return msgspec.structs.replace(plan, parts=(part,))
    work = _Work(kit, source, source.data, options, observer, keep)
    page_count = yield from call(lambda: _count(work))
    numbers = select(options.pages, page_count) if page_count else ()
    one = yield from call(lambda: _whole(work))
    if one is not None:
        parts = _parallel(work, one, numbers, page_count or 0)
    else:
        parts = yield from call(lambda: _divided(work, numbers, page_count))
    return msgspec.structs.replace(plan, parts=parts, steps=tuple(work.steps), page_count=page_count)


def _count(work: _Work) -> int | None:
    if not pdf.is_pdf(work.data):
        return 1
    if not pdf.available():
        return None
    try:
        return pdf.count_pages(work.data)
    except pdf.PdfError:
        return None


def _whole(work: _Work) -> Part | None:
    """The document in one piece, if any way carries it so."""
    part = Part(
        content_key=content_key(work.source.digest, work.options),
        digest=work.source.digest,
        carry=Carry.INLINE,
        pages=work.options.pages,
    )
    if work.fits(work.data):
        return part
    if not is_archive(work.data):
        packed = gzipped(work.data)
        enough = work.fits(packed)
        detail = f"{len(work.data)} -> {len(packed)} bytes{'' if enough else ', still over the limit'}"
        work.note("gzip", detail, bytes=len(work.data), packed=len(packed))
        if enough:
            return msgspec.structs.replace(part, carry=Carry.GZIP)
    if not work.kit.uploads:
        return None
    work.note("upload", "to the configured storage", bytes=len(work.data))
    return msgspec.structs.replace(part, carry=Carry.UPLOAD)


def _parallel(work: _Work, part: Part, numbers: Sequence[int], page_count: int) -> tuple[Part, ...]:
    """One job, or several that read different pages of the same bytes."""
    size = work.kit.pages_per_job
    if not size or len(numbers) <= size:
        return (msgspec.structs.replace(part, covers=tuple(numbers)),)
    parts = []
    spelled = [spell(chosen) for chosen in chunks(numbers, size)]
    # The worker may find more pages than the document counts: the last job asks for them as well.
    spelled[-1] = ",".join(filter(None, (spelled[-1], beyond(work.options.pages, page_count))))
    for chosen, pages in zip(chunks(numbers, size), spelled, strict=True):
        options = msgspec.structs.replace(work.options, pages=pages)
        key = content_key(work.source.digest, options)
        parts.append(msgspec.structs.replace(part, content_key=key, pages=options.pages, covers=chosen))
    work.note("parallel", f"{len(parts)} jobs of at most {size} pages", jobs=len(parts))
    return tuple(parts)


def _divided(work: _Work, numbers: Sequence[int], page_count: int | None) -> tuple[Part, ...]:
    """Several files of fewer pages, each small enough."""
    if not pdf.is_pdf(work.data):
        raise _too_large(work, "only a PDF can be divided")
    if not pdf.available():
        work.note("split", "needs pip install 'glmocr-runpod[pdf]'", loud=True)
        raise MissingExtra("the document must be divided: pip install 'glmocr-runpod[pdf]'")
    if page_count is None:
        raise _too_large(work, "it cannot be opened here, being damaged or encrypted")
    if not numbers:
        raise ConfigError(f"pages={work.options.pages!r} selects no page: {work.source.name} has {page_count}")
    found = pdf.page_objects(work.data)
    if found > page_count:
        detail = f"the file counts {page_count} pages and seems to hold {found}; only those it counts are sent"
        work.note("split", detail, loud=True, counted=page_count, found=found)
    parts = _cut(work, numbers)
    if len(parts) > 1:
        work.note("split", f"{len(parts)} jobs, losslessly by pages", jobs=len(parts), pages=len(numbers))
    return tuple(parts)


def _cut(work: _Work, numbers: Sequence[int]) -> list[Part]:
    """Halves until each part fits: pages share fonts and pictures, so sizes are known only when they are written."""
    guess = -(-inline_size(work.data) // (work.kit.body_limit - ROOM))
    size = max(1, len(numbers) // max(guess, 1))
    if work.kit.pages_per_job:
        size = min(size, work.kit.pages_per_job)
    waiting = chunks(numbers, size)
    parts: list[Part] = []
    while waiting:
        chosen = waiting.pop(0)
        data = _file_of(work, chosen)
        carry = _carry(work, data)
        if carry is None and len(chosen) > 1:
            waiting[:0] = chunks(chosen, -(-len(chosen) // 2))
            continue
        parts.append(_single(work, data, chosen[0]) if carry is None else _kept(work, data, carry, chosen))
    if all(part.carry is Carry.NONE for part in parts):
        raise _too_large(work, parts[0].why)
    return parts


def _carry(work: _Work, data: bytes) -> Carry | None:
    if work.fits(data):
        return Carry.INLINE
    return Carry.GZIP if work.fits(gzipped(data)) else None


def _file_of(work: _Work, chosen: Sequence[int]) -> bytes:
    """A file of those pages, compared with the document's own: a part that shows less is never sent."""
    try:
        data = pdf.cut(work.data, chosen)
        before, after = pdf.looks(work.data, chosen), pdf.looks(data)
    except pdf.PdfError as error:
        raise _too_large(work, f"it cannot be divided: {error}") from error
    changes = [pdf.same(was, now) for was, now in zip(before, after, strict=False)]
    if len(before) != len(after) or any(changes):
        what = next((change for change in changes if change), "pages are missing")
        raise _too_large(work, f"dividing it would lose something: {what}")
    return data


def _single(work: _Work, data: bytes, page: int) -> Part:
    """One page that is over the limit by itself: shrunk, or left out of what is sent and told in the result."""
    if work.kit.shrinker is None:
        return _unsent(work, page, f"page {page} needs Ghostscript: {work.kit.shrinker_missing}")
    result = work.kit.shrinker(data, (work.kit.body_limit - ROOM) * 3 // 4)
    if result.dpi is None:
        return _unsent(work, page, f"page {page} kept as it is: {result.reason}")
    detail = f"page {page} resampled to {result.dpi} DPI: {result.reason}"
    work.note("ghostscript", detail, loud=True, dpi=result.dpi, page=page, bytes=len(result.data))
    return _kept(work, result.data, Carry.INLINE, (page,))


def _unsent(work: _Work, page: int, why: str) -> Part:
    work.note("ghostscript", why, loud=True, page=page)
    why = f"page {page} alone is over the limit ({why})"
    return Part(content_key="", digest="", carry=Carry.NONE, pages=None, numbers=(page,), covers=(page,), why=why)


def _kept(work: _Work, data: bytes, carry: Carry, chosen: Sequence[int]) -> Part:
    digest = sha256(data)
    work.keep(digest, data)
    options = msgspec.structs.replace(work.options, pages=None)
    return Part(
        content_key=content_key(digest, options),
        digest=digest,
        carry=carry,
        pages=None,
        numbers=tuple(chosen),
        covers=tuple(chosen),
        kept=True,
    )


def _too_large(work: _Work, why: str) -> TooLarge:
    tried = "; ".join(f"{step.step}: {step.detail}" for step in work.steps)
    message = (
        f"{work.source.name} has {len(work.data)} bytes, over what a request carries, and {why} ({tried}). "
        "Configure a bucket or the volume for uploads (docs/client.md)"
    )
    return TooLarge(message, bytes=len(work.data), steps=[msgspec.to_builtins(step) for step in work.steps])
