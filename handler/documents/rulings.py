"""Which pages of a PDF may hold a table, told by the lines they draw before any of it is drawn.

A table's answer takes the engine longer than all else on a page, so it should begin first. The layout model would say
where tables are, but it takes pages one by one: in a short document it sees the last when the engine is already full.
Being wrong costs nothing but the order.
"""

import re
from itertools import islice
from pathlib import Path

from handler.documents.mupdf import FAILURES, MuPdf

BYTES_LOOKED_AT = 256 * 1024
"""Of each stream, unpacked: a page of text has 10 to 30 KB, and a bomb must cost no more than a page."""
FEWEST_RULINGS = 12
"""Lines and bars that a table has at least. A page of text has a few, for headings, underlines and a frame."""

_RULING = re.compile(rb"\s(?:l\s|re\s+[^\sW])")
"""A line, or a rectangle that is not there to clip."""
_PICTURE = re.compile(rb"\sDo\b")


def pages_with_tables(path: Path, password: str | None) -> frozenset[int]:
    """The pages (from 1) that may hold a table, as lines or as a picture.

    The file is opened once more: what MuPDF complains about while it reads a page it may not say again, and the page's
    own drawing has to hear it.
    """
    document = MuPdf(path, password)
    return frozenset(page for page in range(1, document.page_count + 1) if _may_hold_table(document, page - 1))


def _may_hold_table(document: MuPdf, page: int) -> bool:
    try:
        instructions = document.content_streams(page, BYTES_LOOKED_AT)
    except (*FAILURES, ValueError):
        return True
    rulings = sum(1 for _ in islice(_RULING.finditer(instructions), FEWEST_RULINGS))
    return rulings == FEWEST_RULINGS or _PICTURE.search(instructions) is not None
