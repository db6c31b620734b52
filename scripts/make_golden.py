"""Writes tests/contract/golden/*.json from the worker's own models: one file for each form a result travels in.

Both sides' tests read them, so neither side can change the wire alone. `--check` writes nothing and fails on a
difference.
"""

import argparse
import json
import sys
from pathlib import Path

from pydantic import BaseModel

from handler.identity import content_key
from handler.results.encoding import encode
from handler.schema import (
    Artifact,
    Counts,
    Degraded,
    DegradedItem,
    Delivery,
    DocumentInfo,
    DocumentKind,
    DocumentStatus,
    Envelope,
    ErrorCode,
    ErrorInfo,
    Format,
    Furniture,
    JobInput,
    JobOutput,
    JsonValue,
    Label,
    PageCounts,
    PageResult,
    PageStatus,
    PageWarning,
    ProducedBy,
    Progress,
    Reason,
    RegionCounts,
    RegionOrigin,
    RegionResult,
    RegionStatus,
    Usage,
)

GOLDEN = Path(__file__).parents[1] / "tests" / "contract" / "golden"
SHA256 = "5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg=="

REQUESTS: dict[str, JobInput] = {
    "defaults": JobInput(file_base64="aGk="),
    "all": JobInput(
        volume_path="in/contract.pdf",
        pages="1-3,7,10-",
        formats=(Format.MARKDOWN, Format.FIGURES, Format.JSON, Format.JSON),
        dpi=150,
        max_tokens=4096,
        furniture=Furniture.KEEP,
        read_figures=True,
        password="open sesame",  # noqa: S106 - an example
        idempotency_key="order-4711",
        checkpoint=False,
    ),
    "other spelling": JobInput(file_base64="aGk=", pages="10-, 7,2-3,1"),
}


def output() -> JobOutput:
    """A result in which every status and every optional key occurs."""
    return JobOutput(
        status=DocumentStatus.PARTIAL,
        document=_document(),
        markdown="# Agreement\n\n![image](figures/page-0001-figure-001.png)\n\nZürich, 3.14 € — “signed”\n\n| a |\n",
        pages=_pages(),
        counts=Counts(
            pages=PageCounts(requested=4, ok=1, blank=1, partial=1, failed=1),
            regions=RegionCounts(
                found=4, ok=1, truncated=1, failed=1, skipped=1, recovered=1, repetitive=1, quarantined=0
            ),
            characters=42,
        ),
        degraded=Degraded(
            count=2,
            items=(
                DegradedItem(page=3, region=0, reason=Reason.TOKEN_LIMIT, message="cut at 4096 tokens"),
                DegradedItem(page=4, reason=Reason.RENDER_TIMEOUT, message="no picture within 30 s"),
            ),
        ),
        usage=Usage(requests=5, retries=1, prompt_tokens=4000, completion_tokens=900),
        artifacts=(
            Artifact(
                name="figures/page-0001-figure-001.png",
                media_type="image/png",
                size=67,
                sha256="d44c0303173ecdb8ba72a7ab688f020583b31865537e2f9ab57e56aeec687807",
                page=1,
                region=1,
                data=PIXEL,
            ),
            Artifact(
                name="big.jpg", media_type="image/jpeg", size=9_000_000, sha256=SHA256, key="glmocr/results/k/big.jpg"
            ),
        ),
        produced_by=ProducedBy(
            worker="0.1.0", engine="sglang", engine_version="0.5.17", model="glm-ocr", layout="pp_doclayout_v3"
        ),
        idempotency_key="order-4711",
        debug={"timings": {"render_s": 0.5}, "log": ["one line"]},
    )


def _document() -> DocumentInfo:
    return DocumentInfo(
        sha256=SHA256,
        size=12345,
        kind=DocumentKind.PDF,
        page_count=12,
        pages_read=3,
        filename="contract.pdf",
        content_key=content_key(SHA256, REQUESTS["all"]),
        repaired=True,
    )


def _pages() -> tuple[PageResult, ...]:
    title = RegionResult(
        index=0,
        label=Label.DOC_TITLE,
        bbox=(100, 50, 900, 120),
        bbox_px=(165, 117, 1488, 280),
        text="Agreement \U0001f600",
        status=RegionStatus.OK,
        finish_reason="stop",
        score=0.98,
        requests=1,
    )
    figure = RegionResult(
        index=1,
        label=Label.IMAGE,
        bbox=(0, 200, 1000, 400),
        bbox_px=(0, 467, 1654, 935),
        text="",
        status=RegionStatus.SKIPPED,
        reason=Reason.FIGURE_NOT_READ,
        figure="figures/page-0001-figure-001.png",
    )
    cut = RegionResult(
        index=0,
        label=Label.TABLE,
        bbox=(0, 0, 1000, 1000),
        bbox_px=(0, 0, 1654, 2339),
        text="<table><tr><td>1",
        superseded=("<table><tr><td>l",),
        status=RegionStatus.TRUNCATED,
        finish_reason="length",
        reason=Reason.TOKEN_LIMIT,
        message="cut at 4096 tokens",
        origin=RegionOrigin.WHOLE_PAGE,
        requests=2,
    )
    failed = cut.model_copy(
        update={
            "index": 1,
            "text": "",
            "status": RegionStatus.FAILED,
            "finish_reason": None,
            "reason": Reason.ENGINE_ERROR,
            "origin": RegionOrigin.RECOVERED,
        }
    )
    size = {"width": 1654, "height": 2339, "dpi": 200.0}
    return (
        PageResult(page=1, status=PageStatus.OK, ink=0.08, coverage=0.99, regions=(title, figure), **size),
        PageResult(page=2, status=PageStatus.BLANK, ink=0.0, coverage=1.0, **size),
        PageResult(
            page=3,
            status=PageStatus.PARTIAL,
            angle=90,
            ink=0.2,
            coverage=0.7,
            regions=(cut, failed),
            warnings=(PageWarning(reason=Reason.PAGE_REPAIRED, message="the page's stream was repaired"),),
            **size,
        ),
        PageResult(page=10, status=PageStatus.FAILED, reason=Reason.RENDER_TIMEOUT, message="no picture within 30 s"),
    )


def envelope(delivery: Delivery, **where: str) -> Envelope:
    """Around the same result."""
    whole = output()
    encoded = encode(whole)
    assert whole.document is not None
    return Envelope(
        delivery=delivery,
        size=len(encoded.data),
        sha256=encoded.sha256,
        status=whole.status,
        counts=whole.counts,
        content_key=whole.document.content_key,
        debug={"timings": {"render_s": 0.5}},
        **where,
    )


def golden() -> dict[str, JsonValue]:
    """File name -> content."""
    key = f"glmocr/results/{content_key(SHA256, REQUESTS['all'])}/result.json"
    failure = ErrorInfo(
        code=ErrorCode.PASSWORD_REQUIRED,
        message="The document is encrypted; give its `password`.",
        retryable=False,
        details={"filename": "contract.pdf"},
    )
    forms: dict[str, BaseModel] = {
        "inline": output(),
        "gzip": envelope(Delivery.GZIP, data=encode(output()).zipped()),
        "volume": envelope(Delivery.VOLUME, key=key),
        "s3": envelope(Delivery.S3, key=key, url="https://bucket.example/result?signature=abc"),
        "progress": Progress(pages_done=3, pages_total=12, regions_done=40, running=14, queued=2),
    }
    files: dict[str, JsonValue] = {name: form.model_dump(mode="json") for name, form in forms.items()}
    files["error"] = failure.model_dump_json()
    files["request"] = {name: request.model_dump(mode="json") for name, request in REQUESTS.items()}
    files["identity"] = {
        "document_sha256": SHA256,
        "content_keys": {name: content_key(SHA256, request) for name, request in REQUESTS.items()},
    }
    return files


def text(content: JsonValue) -> str:
    """As it stands in the file."""
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def main() -> int:
    """Write or check; 1 when a file differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    differing = []
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, content in golden().items():
        path = GOLDEN / f"{name}.json"
        if check and (not path.exists() or path.read_text() != text(content)):
            differing.append(path.name)
        elif not check:
            path.write_text(text(content))
    if differing:
        print(f"differ from the worker's models, run scripts/make_golden.py: {', '.join(differing)}", file=sys.stderr)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
