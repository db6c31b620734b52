"""Parts put together: every page once, in order, under its original number; nothing the worker said is dropped."""

import copy
import random
import re
from typing import Any

import msgspec
from glmocr_runpod.contract import JobOutput
from glmocr_runpod.errors import JobFailed
from glmocr_runpod.merge import PartResult, merge
from glmocr_runpod.pages import chunks
from glmocr_runpod.plan import Carry, Part
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.schema import JobOutput as WorkersJobOutput
from tests.contract.golden_files import golden

WHOLE = {"sha256": "f" * 64, "size": 1, "page_count": 9, "content_key": "e" * 64, "filename": "whole.pdf"}


def part(*covers: int, own_file: bool = True) -> Part:
    numbers = covers if own_file else None
    return Part(content_key="k", digest="d", carry=Carry.INLINE, pages=None, numbers=numbers, covers=covers)


def output(*pages: int) -> dict[str, Any]:
    """The golden result with its pages renumbered."""
    wire = copy.deepcopy(golden("inline"))
    for page, number in zip(wire["pages"], pages, strict=True):
        page["page"] = number
    wire["degraded"]["items"][0]["page"] = pages[2]
    wire["degraded"]["items"][1]["page"] = pages[3]
    wire["artifacts"][0]["page"] = pages[0]
    wire["markdown"] = f"# First page {pages[0]}\n\n![](figures/page-0001-figure-001.png)\n"
    return dict(wire)


def test_pages_get_their_original_numbers() -> None:
    merged = merge(
        [PartResult(part(6, 7, 8, 9), output(1, 2, 3, 4)), PartResult(part(1, 2, 3, 4), output(1, 2, 3, 4))], WHOLE
    )
    assert [page["page"] for page in merged["pages"]] == [1, 2, 3, 4, 6, 7, 8, 9]
    assert [item["page"] for item in merged["degraded"]["items"]] == [3, 4, 8, 9]
    assert merged["counts"]["pages"] == {"requested": 8, "ok": 2, "blank": 2, "partial": 2, "failed": 2}
    assert merged["counts"]["regions"]["found"] == 8
    assert merged["counts"]["characters"] == 84
    assert merged["usage"]["prompt_tokens"] == 8000
    assert merged["status"] == "partial"
    assert merged["document"]["page_count"] == 9
    assert merged["document"]["pages_read"] == 6
    assert merged["document"]["kind"] == "pdf"


def test_the_merged_result_keeps_the_contract() -> None:
    merged = merge([PartResult(part(1, 2, 3, 4), output(1, 2, 3, 4)), _failed(part(5, 6))], WHOLE)
    WorkersJobOutput.model_validate(merged)
    msgspec.convert(merged, JobOutput)


def test_figures_of_the_same_name_stay_apart() -> None:
    merged = merge([PartResult(part(*p), output(1, 2, 3, 4)) for p in ((1, 2, 3, 4), (5, 6, 7, 8))], WHOLE)
    names = [artifact["name"] for artifact in merged["artifacts"]]
    assert len(set(names)) == len(names) == 4
    figures = [r["figure"] for p in merged["pages"] for r in p["regions"] if r.get("figure")]
    assert figures == ["figures/page-0001-figure-001.png", "figures/page-0005-figure-001.png"]
    assert [name for name in names if "big" in name] == ["part-1-big.jpg", "part-2-big.jpg"]
    assert set(figures) <= set(names)
    assert all(f"]({figure})" in merged["markdown"] for figure in figures)


def test_a_selection_of_the_same_file_needs_no_numbers() -> None:
    results = [
        PartResult(part(1, 2, 3, 4, own_file=False), output(1, 2, 3, 4)),
        PartResult(part(5, 6, 7, 8, own_file=False), output(5, 6, 7, 8)),
    ]
    merged = merge(results, WHOLE)
    assert [page["page"] for page in merged["pages"]] == list(range(1, 9))
    assert merged["markdown"].index("page 1") < merged["markdown"].index("page 5")


def test_a_part_that_failed_leaves_failed_pages() -> None:
    merged = merge([_failed(part(1, 2)), PartResult(part(3, 4, 5, 6), output(1, 2, 3, 4))], WHOLE)
    assert [page["status"] for page in merged["pages"]] == ["failed", "failed", "ok", "blank", "partial", "failed"]
    assert "engine_unavailable: gone" in merged["pages"][0]["message"]
    assert merged["degraded"]["count"] == 4
    assert merged["counts"]["pages"]["failed"] == 3


def test_a_part_of_which_no_page_could_be_read_brings_its_own_ledger() -> None:
    wire = output(1, 2, 3, 4) | {"status": "failed"}
    gone = JobFailed("none", worker_code="no_page_readable")
    merged = merge([PartResult(part(5, 6, 7, 8), wire, gone), PartResult(part(1, 2, 3, 4), output(1, 2, 3, 4))], WHOLE)
    assert [page["page"] for page in merged["pages"]] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert merged["counts"]["regions"]["found"] == 8


def test_losses_come_first_where_the_list_is_cut() -> None:
    wire = output(1, 2, 3, 4)
    notes = [{"page": 1, "region": 0, "reason": "low_contrast", "message": "pale"}] * 200
    wire["degraded"] = {"count": 202, "items": [*wire["degraded"]["items"], *notes][:200]}
    merged = merge([PartResult(part(*range(n, n + 4)), wire) for n in (1, 5)], WHOLE)
    assert merged["degraded"]["count"] == 404
    assert [item["page"] for item in merged["degraded"]["items"][:5]] == [3, 4, 7, 8, 1]


def test_unknown_keys_of_newer_workers_survive() -> None:
    wire = output(1, 2, 3, 4)
    wire["pages"][0]["mood"] = "good"
    merged = merge([PartResult(part(5, 6, 7, 8), wire)], WHOLE)
    assert merged["pages"][0]["mood"] == "good"


def test_comments_name_original_pages() -> None:
    wire = output(1, 2, 3, 4)
    wire["markdown"] = (
        "text\n\n<!-- page 3, region 0 (table): cut -->\n\n<!-- page 4: not read -->\n\nsee page 3, there\n"
    )
    merged = merge([PartResult(part(11, 12, 13, 14), wire), _failed(part(15))], WHOLE)
    assert merged["markdown"].split("\n\n") == [
        "text",
        "<!-- page 13, region 0 (table): cut -->",
        "<!-- page 14: not read -->",
        "see page 3, there",
        "<!-- page 15: not read - engine_unavailable: gone -->\n",
    ]


def test_markdown_that_nobody_asked_for_stays_absent() -> None:
    wire = output(1, 2, 3, 4) | {"markdown": None}
    assert merge([PartResult(part(1, 2, 3, 4), wire), _failed(part(5))], WHOLE)["markdown"] is None


def _any_output(pages: int, chance: random.Random) -> dict[str, Any]:
    """A part's result: regions with texts of their own, some of them figures with an artifact and a link."""
    wire = copy.deepcopy(golden("inline"))
    page, figure = wire["pages"][0], wire["artifacts"][0]
    wire |= {"pages": [], "artifacts": [], "markdown": "", "degraded": {"count": 0, "items": []}}
    for number in range(1, pages + 1):
        regions = []
        for index in range(chance.randint(0, 3)):
            name = f"figures/page-{number:04d}-figure-{index:03d}.jpg" if chance.random() < 0.4 else None
            text = f"text {chance.random()}"
            regions.append({**page["regions"][0], "index": index, "text": text, "figure": name})
            wire["markdown"] += f"{text}\n\n"
            if name:
                wire["artifacts"].append({**figure, "name": name, "page": number, "region": index})
                wire["markdown"] += f"![image]({name})\n\n"
        wire["pages"].append({**page, "page": number, "regions": regions})
    return dict(wire)


@given(st.sets(st.integers(1, 60), min_size=1, max_size=30), st.integers(1, 7), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_whatever_is_divided_every_page_text_and_figure_is_there_once(
    asked: set[int], size: int, chance: random.Random
) -> None:
    covers = chunks(sorted(asked), size)
    parts = [part(*numbers) for numbers in covers]
    results = [PartResult(one, _any_output(len(one.covers), chance)) for one in parts[:1]]
    for one in parts[1:]:
        gone = chance.random() < 0.3
        results.append(_failed(one) if gone else PartResult(one, _any_output(len(one.covers), chance)))
    texts = [r["text"] for one in results if one.output for page in one.output["pages"] for r in page["regions"]]
    merged = merge(results, WHOLE)
    WorkersJobOutput.model_validate(merged)
    assert [page["page"] for page in merged["pages"]] == sorted(asked)
    assert [r["text"] for page in merged["pages"] for r in page["regions"]] == texts
    assert all(text in merged["markdown"] for text in texts)
    names = {artifact["name"]: artifact["page"] for artifact in merged["artifacts"]}
    assert len(names) == len(merged["artifacts"])
    assert set(re.findall(r"\]\(([^)]+)\)", merged["markdown"])) == names.keys()
    assert all(f"page-{page:04d}-" in name for name, page in names.items())


def _failed(missing: Part) -> PartResult:
    return PartResult(missing, None, JobFailed("gone", worker_code="engine_unavailable", retryable=True))
