"""Several jobs' results as one document's, pages in their original order and under their original numbers.

Works on the JSON, so that keys this client does not know survive.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glmocr_runpod.contract import JsonObject
from glmocr_runpod.errors import JobFailed
from glmocr_runpod.plan import Part

_COMMENT = re.compile(r"^(<!-- page )(\d+)(?=[:,])", re.M)
DEGRADED_ITEMS_LIMIT = 200
"""As the worker cuts its list."""
PAGE_STATUSES = ("ok", "blank", "partial", "failed")


@dataclass(frozen=True, slots=True)
class PartResult:
    """What became of one part: its `JobOutput` as JSON, why there is none, or both where no page could be read."""

    part: Part
    output: JsonObject | None
    failure: JobFailed | None = None


def merge(results: Sequence[PartResult], document: Mapping[str, Any]) -> JsonObject:
    """One `JobOutput`. `document` has what the whole file says: sha256, size, page_count, content_key, filename.

    At least one part has an output; the pages of a part that has none become `failed` pages.
    """
    outputs = [_renumbered(result, index) for index, result in enumerate(results)]
    first = next(output for output, result in zip(outputs, results, strict=True) if result.output is not None)
    pages = sorted((page for output in outputs for page in output["pages"]), key=lambda page: page["page"])
    counts = _counts(outputs, pages)
    return {
        **first,
        "status": _status(pages),
        "document": _document(first, outputs, pages, {**document, "page_count": _page_count(results, document)}),
        "markdown": _markdown(outputs),
        "pages": pages,
        "counts": counts,
        "degraded": _degraded(outputs, pages),
        "usage": _sums([output.get("usage", {}) for output in outputs]),
        "artifacts": [artifact for output in outputs for artifact in output["artifacts"]],
        "debug": {
            "jobs": [{"produced_by": output.get("produced_by"), **output.get("debug", {})} for output in outputs]
        },
    }


def _renumbered(result: PartResult, index: int) -> JsonObject:
    if result.output is None:
        return _unread(result)
    output = result.output
    numbers = result.part.numbers
    if numbers is None:
        return {"artifacts": [], "pages": [], **output}

    def original(page: int) -> int:
        return numbers[page - 1] if 1 <= page <= len(numbers) else page

    names = {a["name"]: _artifact_name(a, index, original) for a in output.get("artifacts", [])}
    return {
        **output,
        "markdown": _readdressed(output.get("markdown"), names, original),
        "pages": [_page(page, original(page["page"]), names) for page in output.get("pages", [])],
        "artifacts": [
            {**a, "name": names[a["name"]], "page": original(a["page"]) if a.get("page") else None}
            for a in output.get("artifacts", [])
        ],
        "degraded": {
            **output.get("degraded", {"count": 0}),
            "items": [{**item, "page": original(item["page"])} for item in output.get("degraded", {}).get("items", [])],
        },
    }


def _page(page: JsonObject, number: int, names: Mapping[str, str]) -> JsonObject:
    regions = [
        {**region, "figure": names.get(region["figure"], region["figure"])} if region.get("figure") else region
        for region in page.get("regions", [])
    ]
    return {**page, "page": number, "regions": regions}


def _artifact_name(artifact: JsonObject, index: int, original: Callable[[int], int]) -> str:
    """Two parts both have a page 1, and so a figure of the same name: it takes the page's original number."""
    name: str = artifact["name"]
    page = artifact.get("page")
    own, whole = (f"page-{number:04d}-" for number in (page or 0, original(page or 0)))
    if own in name:
        return name.replace(own, whole, 1)
    folder, slash, file = name.rpartition("/")
    return f"{folder}{slash}part-{index + 1}-{file}"


def _readdressed(markdown: str | None, names: Mapping[str, str], original: Callable[[int], int]) -> str | None:
    """Links to renamed figures, and the page numbers in the worker's comments on what it could not read."""
    if not markdown:
        return markdown
    if names:
        links = re.compile(r"(?<=\]\()(" + "|".join(re.escape(name) for name in names) + r")(?=\))")
        markdown = links.sub(lambda match: names[match.group()], markdown)
    return _COMMENT.sub(lambda match: f"{match[1]}{original(int(match[2]))}", markdown)


def _unread(result: PartResult) -> JsonObject:
    """The failed pages of a part whose failure brought none along."""
    message = result.failure.message if result.failure else "its job brought no result"
    code = result.failure.worker_code if result.failure else "unknown_error"
    pages = [
        {"page": number, "status": "failed", "reason": "other", "message": f"{code}: {message}"}
        for number in result.part.covers
    ]
    items = [{"page": page["page"], "region": None, "reason": "other", "message": page["message"]} for page in pages]
    return {
        "pages": [_PAGE_DEFAULTS | page for page in pages],
        "markdown": "\n\n".join(
            f"<!-- page {page['page']}: not read - {_plain(str(page['message']))} -->" for page in pages
        ),
        "artifacts": [],
        "counts": {"pages": {"requested": len(pages), "failed": len(pages)}},
        "degraded": {"count": len(items), "items": items},
        "debug": {"error": code},
    }


def _plain(message: str) -> str:
    """Nothing that could end a comment."""
    return " ".join(re.sub("-{2,}", "-", message).replace(">", ")").split())


_PAGE_DEFAULTS: JsonObject = {
    "width": 0,
    "height": 0,
    "dpi": None,
    "angle": 0,
    "ink": None,
    "coverage": None,
    "regions": [],
    "warnings": [],
}


def _status(pages: Sequence[JsonObject]) -> str:
    statuses = {page["status"] for page in pages}
    if statuses <= {"ok", "blank"}:
        return "complete"
    return "failed" if statuses == {"failed"} else "partial"


def _page_count(results: Sequence[PartResult], whole: Mapping[str, Any]) -> int:
    """What the worker found in the whole file where it had it, if that is more than the client could count."""
    counted: int = whole["page_count"] or 0
    found: list[int] = [
        result.output["document"]["page_count"]
        for result in results
        if result.output and result.output.get("document") and result.part.numbers is None
    ]
    return max(counted, *found) if found else counted


def _document(
    first: JsonObject, outputs: Sequence[JsonObject], pages: Sequence[JsonObject], whole: Mapping[str, Any]
) -> JsonObject:
    opened = [output["document"] for output in outputs if output.get("document")]
    return {
        **(first.get("document") or {}),
        **whole,
        "pages_read": sum(page["status"] != "failed" for page in pages),
        "repaired": any(document.get("repaired") for document in opened),
    }


def _markdown(outputs: Sequence[JsonObject]) -> str | None:
    if all(output.get("markdown") is None for output in outputs if "produced_by" in output):
        return None
    written = [(output.get("markdown") or "").strip("\n") for output in outputs]
    text = "\n\n".join(part for part in written if part)
    return f"{text}\n" if text else ""


def _counts(outputs: Sequence[JsonObject], pages: Sequence[JsonObject]) -> JsonObject:
    counts = [output.get("counts", {}) for output in outputs]
    by_status = {status: sum(page["status"] == status for page in pages) for status in PAGE_STATUSES}
    return {
        "pages": {"requested": len(pages), **by_status},
        "regions": _sums([count.get("regions", {}) for count in counts]),
        "characters": sum(count.get("characters", 0) for count in counts),
    }


def _degraded(outputs: Sequence[JsonObject], pages: Sequence[JsonObject]) -> JsonObject:
    """Losses first, as the worker has them, so that the limit cuts what matters least."""
    lists = [output.get("degraded", {}) for output in outputs]
    by_number = {page["page"]: page for page in pages}
    items = [item for one in lists for item in one.get("items", [])]
    items.sort(key=lambda item: (not _is_loss(item, by_number.get(item["page"], {})), item["page"]))
    return {"count": sum(one.get("count", 0) for one in lists), "items": items[:DEGRADED_ITEMS_LIMIT]}


def _is_loss(item: JsonObject, page: JsonObject) -> bool:
    if page.get("status") not in ("failed", "partial"):
        return False
    if item.get("region") is None:
        return bool(item["reason"] == page.get("reason"))
    statuses = {region["index"]: region["status"] for region in page.get("regions", [])}
    return statuses.get(item["region"], "failed") in ("failed", "truncated")


def _sums(parts: Sequence[Mapping[str, Any]]) -> JsonObject:
    names = list(dict.fromkeys(name for part in parts for name in part))
    return {name: sum(part.get(name, 0) for part in parts) for name in names}
