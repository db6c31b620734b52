"""Pages drawn from blocks, each block one region with a known box."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor

from reportlab.lib import colors
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Paragraph, Table, TableStyle

from bench.corpus.marks import BITS, LEFT, PAGE_HEIGHT, PAGE_WIDTH, SQUARE, TOP, draw_mark

RIGHT = PAGE_WIDTH - LEFT
BOTTOM = 40.0
GAP = 9.0
PAD = 2.0
BOX_SCALE = 1000
BODY = ParagraphStyle("body", fontName="Times-Roman", fontSize=10, leading=13)
HEADING = ParagraphStyle("heading", fontName="Times-Bold", fontSize=12, leading=15)
FORMULA = ParagraphStyle("formula", fontName="Times-Italic", fontSize=12, leading=16)
VOCABULARY = """agreement party shall provide the services under this section within thirty days of notice and any
amount due will bear interest at a rate of per cent each year unless otherwise agreed in writing by both parties hereto
supplier customer may terminate for material breach which has not been remedied confidential information disclosed by
either side remains property subject to applicable law warranty liability insurance records audit delivery acceptance
tests schedule annex payment invoice currency tax duties export personnel premises access security data protection
assignment waiver severability entire governing courts jurisdiction arbitration counterparts signature date"""
WORDS = VOCABULARY.split()


@dataclass(frozen=True, slots=True)
class Region:
    """One region as a layout model would report it: x0, y0, x1, y1 in thousandths of the page."""

    label: str
    box: tuple[int, int, int, int]


def sentence(draw: random.Random, words: int) -> str:
    """A sentence of so many words."""
    return " ".join(draw.choice(WORDS) for _ in range(words)).capitalize() + "."


class PageWriter:
    """Draws blocks from the top of a page down and remembers where they are."""

    def __init__(self, canvas: Canvas, number: int, draw: random.Random) -> None:
        self._canvas = canvas
        self._draw = draw
        self._y = PAGE_HEIGHT - TOP
        self.regions: list[Region] = []
        draw_mark(canvas, number)
        indent = (BITS + 2) * SQUARE
        self._place("paragraph_title", Paragraph(f"{number + 1}. {sentence(draw, 4)}", HEADING), indent)

    def left(self) -> float:
        """Points left on the page."""
        return self._y - BOTTOM

    def paragraph(self, words: int) -> None:
        """A paragraph of text."""
        self._place("text", Paragraph(sentence(self._draw, words), BODY))

    def formula(self) -> None:
        """A displayed formula."""
        terms = " + ".join(f"x<sub>{i}</sub><super>{self._draw.randint(2, 9)}</super>" for i in range(8))
        self._place("display_formula", Paragraph(f"f(x) = {terms}", FORMULA), 60.0)

    def table(self, rows: int) -> None:
        """A ruled table of four columns."""
        cells = [
            [str(row), sentence(self._draw, 3), f"{self._draw.randint(1, 99999)}.{self._draw.randint(10, 99)}", "EUR"]
            for row in range(rows)
        ]
        table = Table(cells, colWidths=[40, 250, 120, RIGHT - LEFT - 410], rowHeights=[15] * rows)
        table.setStyle(TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("FONTSIZE", (0, 0), (-1, -1), 9)]))
        self._place("table", table)

    def figure(self, height: float) -> None:
        """A drawing that is not read."""
        self._claim("image", LEFT, height)
        for i in range(60):
            shade = self._draw.random()
            self._canvas.setFillColorRGB(shade, 0.5, 1 - shade)
            self._canvas.circle(LEFT + 20 + i * 7.5, self._y + height * (0.15 + 0.7 * self._draw.random()), 8, fill=1)
        self._canvas.setFillColorRGB(0, 0, 0)
        self._y -= GAP

    def _place(self, label: str, block: Flowable, indent: float = 0.0) -> None:
        _, height = block.wrap(RIGHT - LEFT - indent, self.left())
        self._claim(label, LEFT, height)
        block.drawOn(self._canvas, LEFT + indent, self._y)
        self._y -= GAP

    def _claim(self, label: str, x0: float, height: float) -> None:
        top, bottom = PAGE_HEIGHT - self._y - PAD, PAGE_HEIGHT - self._y + height + PAD
        box = (
            floor((x0 - PAD) * BOX_SCALE / PAGE_WIDTH),
            floor(top * BOX_SCALE / PAGE_HEIGHT),
            ceil((RIGHT + PAD) * BOX_SCALE / PAGE_WIDTH),
            ceil(bottom * BOX_SCALE / PAGE_HEIGHT),
        )
        self.regions.append(Region(label, box))
        self._y -= height


PageMaker = Callable[[PageWriter, random.Random, int], None]


def agreement_page(page: PageWriter, draw: random.Random, index: int) -> None:
    """Text, and on every fourth page a table: 12 regions."""
    if index % 4 == 3:
        page.table(17)
    paragraphs = 12 - len(page.regions)
    for i in range(paragraphs):
        lines = max(1.0, page.left() / (paragraphs - i) / 13 - 1)
        page.paragraph(int(min(lines * draw.uniform(0.6, 1.1), page.left() / 13 - 1) * 13))


def mixed_page(page: PageWriter, draw: random.Random, index: int) -> None:
    """Text, formulas, a table and a figure: 16 regions, of which 15 are read."""
    page.figure(90)
    page.table(8)
    for _ in range(2):
        page.formula()
    while len(page.regions) < 16:
        lines = page.left() / (16 - len(page.regions)) / 13 - 1
        page.paragraph(max(8, int(min(lines, 4) * draw.uniform(0.6, 1.0) * 13)))
