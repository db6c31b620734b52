"""A document whose pages, layout and engine fail in ways that a plan lays down, and that remembers what was said.

The renderer's crops carry the name of their region instead of a picture, so that the engine knows what it is asked
for. The engine says for each region the beginning of one fixed text, as far as its behaviour allows.
"""

import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from handler.documents.page import (
    Coverage,
    Crop,
    Cut,
    CutRequest,
    OpenedDocument,
    PageImage,
    StagedDocument,
    Survey,
)
from handler.engine.api import EngineBusy, EngineGone, EngineRefused, EngineRequest, EngineTimeout
from handler.geometry import PixelBox, page_box
from handler.layout.detector import Detection, Pixels
from handler.schema import Label
from tests.fakes.engine import FakeEngine, Said, abort, length, stop

WIDTH, HEIGHT = 400, 600


class Behaviour(StrEnum):
    """How the engine answers for one region, always or until it has been asked a few times."""

    WELL = "well"
    WITH_MORE_ROOM = "with more room"
    TRUNCATED = "truncated"
    EMPTY = "empty"
    EMPTY_ONCE = "empty once"
    REFUSED = "refused"
    TIMEOUT = "timeout"
    BUSY = "busy"
    BUSY_ONCE = "busy once"
    ABORTED = "aborted"
    LOOP = "loop"
    LOOP_ONCE = "loop once"
    ECHO = "echo"
    OPEN_TABLE = "open table"
    SECOND_FAILS = "second request fails"
    BUG = "a bug"


LOSES_NOTHING = frozenset(
    {Behaviour.WELL, Behaviour.WITH_MORE_ROOM, Behaviour.EMPTY_ONCE, Behaviour.BUSY_ONCE, Behaviour.LOOP_ONCE}
)


@dataclass(frozen=True)
class PlannedRegion:
    """A region as layout reports it or ink betrays it."""

    label: Label
    box: PixelBox
    behaviour: Behaviour
    ink: float = 0.1


@dataclass(frozen=True)
class PlannedPage:
    """What one page does."""

    found: tuple[PlannedRegion, ...] = ()
    missed: tuple[PlannedRegion, ...] = ()
    whole: Behaviour = Behaviour.WELL
    """How the engine answers when the whole page is asked for."""
    ink: float = 0.01
    covered: float = 1.0
    """Share of the ink inside regions, where nothing was missed."""
    upright: int = 0
    """Degrees it has to be turned clockwise to be read."""
    render_fails: Exception | None = None
    layout_fails: Exception | None = None
    coverage_fails: Exception | None = None
    cut_fails: Exception | None = None


@dataclass
class World:
    """The plan, and a detector, a renderer and an engine that follow it."""

    pages: tuple[PlannedPage, ...]
    said: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """What the engine said, by region name."""
    dies_after: int | None = None
    """Answers after which the engine is gone."""
    held: set[str] = field(default_factory=set)
    """Handles of pages that were rendered and not released."""
    tables: frozenset[int] = frozenset()
    """Pages that opening the document says may hold a table."""
    drawn: list[int] = field(default_factory=list)
    """The pages, as they were drawn."""
    mood: random.Random | None = None
    """Decides how long the engine takes for each answer; at once without it."""

    def engine(self) -> FakeEngine:
        return FakeEngine(self._answer, mood=self.mood)

    def _answer(self, request: EngineRequest) -> Said:
        if self.dies_after is not None and sum(map(len, self.said.values())) >= self.dies_after:
            return EngineGone("exit code 137")
        asked = json.loads(request.jpeg)
        name, behaviour = asked["name"], Behaviour(asked["behaviour"])
        said = _say(behaviour, name, request, times=len(self.said[name]), changed=asked["variant"] == 1)
        self.said[name].append("" if isinstance(said, Exception) else said.text)
        return said

    def asked(self, page: int) -> list[str]:
        return [name for name in self.said if name.startswith(f"page {page} ")]


def full_text(name: str) -> str:
    """What stands in a region."""
    return f"Here stands what was printed in {name}, word for word, to its end."


def _say(behaviour: Behaviour, name: str, request: EngineRequest, *, times: int, changed: bool) -> Said:
    text = full_text(name)
    first = times == 0
    answers: dict[Behaviour, Callable[[], Said]] = {
        Behaviour.WELL: lambda: stop(text),
        Behaviour.WITH_MORE_ROOM: lambda: length(text[:40]) if first else stop(text),
        Behaviour.TRUNCATED: lambda: length(text[: 30 + times]),
        Behaviour.EMPTY: lambda: stop(""),
        Behaviour.EMPTY_ONCE: lambda: stop("" if first else text),
        Behaviour.REFUSED: lambda: EngineRefused("400"),
        Behaviour.TIMEOUT: lambda: EngineTimeout("300 s"),
        Behaviour.BUSY: lambda: EngineBusy("503"),
        Behaviour.BUSY_ONCE: lambda: EngineBusy("503") if first else stop(text),
        Behaviour.ABORTED: lambda: abort(text[:20]),
        Behaviour.LOOP: lambda: length(text + "and so on " * 60),
        Behaviour.LOOP_ONCE: lambda: stop(text) if changed else length("and so on " * 60),
        Behaviour.ECHO: lambda: stop(request.prompt),
        Behaviour.OPEN_TABLE: lambda: stop(f"<table><tr><td>{text}"),
        Behaviour.BUG: lambda: ValueError("a bug"),
        Behaviour.SECOND_FAILS: lambda: length(text[:40]) if first else EngineRefused("400"),
    }
    return answers[behaviour]()


class WorldDetector:
    """Finds what the plan says, on pages whose first pixel holds their number."""

    name = "planned"
    version = None
    batch_size = 4

    def __init__(self, world: World) -> None:
        self._world = world

    def detect(self, pages: Sequence[Pixels]) -> list[list[Detection]]:
        plans = [self._world.pages[int(pixels[0, 0, 0]) - 1] for pixels in pages]
        for plan in plans:
            if plan.layout_fails:
                raise plan.layout_fails
        return [[Detection(region.label, region.box, 0.9) for region in plan.found] for plan in plans]


class WorldRenderer:
    """Renders pages that are nothing but their number."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def open(self, document: StagedDocument) -> OpenedDocument:
        return OpenedDocument(page_count=len(self._world.pages), tables=self._world.tables)

    async def render(self, document: StagedDocument, page: int, dpi: int, angle: int = 0) -> PageImage:
        plan = self._world.pages[page - 1]
        if plan.render_fails:
            raise plan.render_fails
        self._world.drawn.append(page)
        handle = f"{page}/{angle}"
        self._world.held.add(handle)
        return PageImage(handle, WIDTH, HEIGHT, float(dpi), plan.ink, angle=angle)

    async def cut(self, image: PageImage, requests: Sequence[CutRequest]) -> list[Cut]:
        plan = self._plan(image)
        if plan.cut_fails:
            raise plan.cut_fails
        return [self._cut(image, plan, request) for request in requests]

    def _cut(self, image: PageImage, plan: PlannedPage, request: CutRequest) -> Cut:
        page, angle = image.handle.split("/")
        planned = {(r.label, r.box.clamped(WIDTH, HEIGHT)): r for r in reversed((*plan.found, *plan.missed))}
        whole = PlannedRegion(request.label, request.box, plan.whole, plan.ink)
        region = planned.get((request.label, request.box), whole)
        name = f"page {page} turned {angle} {request.label} {request.box.as_bbox()}"
        behaviour = region.behaviour if int(angle) == plan.upright else Behaviour.EMPTY
        picture: dict[str, Any] = {"name": name, "behaviour": behaviour, "variant": request.variant}
        return Cut((Crop(json.dumps(picture).encode(), 280, 56),), region.ink)

    async def survey(self, image: PageImage, requests: Sequence[CutRequest]) -> Survey:
        coverage = await self.coverage(image, [request.box for request in requests])
        missed = [CutRequest(box.clamped(WIDTH, HEIGHT), Label.TEXT) for box in coverage.missed]
        cuts, areas = await self.cut(image, requests), await self.cut(image, missed)
        return Survey(coverage, tuple(cuts), tuple(areas))

    async def coverage(self, image: PageImage, boxes: Sequence[PixelBox]) -> Coverage:
        plan = self._plan(image)
        if plan.coverage_fails:
            raise plan.coverage_fails
        if not plan.missed or page_box(WIDTH, HEIGHT) in boxes:
            return Coverage(plan.covered)
        return Coverage(min(0.8, plan.covered), tuple(region.box for region in plan.missed))

    async def figure(self, image: PageImage, box: PixelBox) -> bytes:
        return b"picture"

    def pixels(self, image: PageImage) -> Pixels:
        return np.full((HEIGHT, WIDTH, 3), int(image.handle.split("/")[0]), np.uint8)

    def release(self, image: PageImage) -> None:
        self._world.held.discard(image.handle)

    def _plan(self, image: PageImage) -> PlannedPage:
        return self._world.pages[int(image.handle.split("/")[0]) - 1]
