"""The bundled page and what it must read as: proof that the whole chain works, before the first job."""

import hashlib
import json
import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

from handler.documents.page import StagedDocument
from handler.errors import GateError
from handler.layout.names import LayoutName
from handler.schema import DocumentKind, PageResult

WORD_RECALL = 0.9
"""Share of the page's words that must come back. Engines that answer plausible garbage reach about 0.1."""
_WORD = re.compile(r"\w+")


def golden_document() -> StagedDocument:
    """The bundled page."""
    path = Path(str(files("handler.golden") / "page.pdf"))
    data = path.read_bytes()
    return StagedDocument(path, DocumentKind.PDF, hashlib.sha256(data).hexdigest(), len(data), path.name)


def verify_golden(page: PageResult, layout: LayoutName) -> None:
    """Raises `GateError` when words or regions of the bundled page are missing from what was read."""
    expected = json.loads((files("handler.golden") / "expected.json").read_text("utf-8"))
    found = Counter(_words(" ".join(region.text for region in page.regions)))
    wanted = Counter(_words(" ".join(expected["words"])))
    recall = (wanted & found).total() / wanted.total()
    if recall < WORD_RECALL:
        raise GateError(
            f"golden page: {recall:.0%} of its words came back, {WORD_RECALL:.0%} needed; the engine answers, but not "
            f"with what the page says (page {page.status.value}{f', {page.reason.value}' if page.reason else ''}). "
            "Check model, engine version and profile; BOOT_GOLDEN_PAGE=off boots all the same"
        )
    missing = set(expected["labels"]) - {region.label.value for region in page.regions}
    if missing and layout is not LayoutName.WHOLE_PAGE:
        raise GateError(
            f"golden page: the layout model found no {' and no '.join(sorted(missing))} region; "
            "check its weights; BOOT_GOLDEN_PAGE=off boots all the same"
        )


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
