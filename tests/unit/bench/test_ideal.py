import json
from pathlib import Path

import pytest

from bench.corpus.documents import Corpus
from bench.ideal import ideal_s, requests
from bench.scenarios import Scenario
from bench.simulator.scheduler import Request

TEXT = {"label": "text", "box": [80, 100, 920, 160]}
TABLE = {"label": "table", "box": [80, 200, 920, 500]}
FIGURE = {"label": "image", "box": [80, 520, 920, 700]}


def corpus(directory: Path, *pages: list[dict[str, object]]) -> Corpus:
    """Sixteen pages, the given ones first and the rest empty."""
    filled = [*pages, *([[]] * (16 - len(pages)))]
    (directory / "regions.json").write_text(json.dumps({str(mark): page for mark, page in enumerate(filled)}))
    return Corpus(directory)


def test_the_regions_are_asked_for_in_the_order_of_the_pages_and_figures_not_at_all(tmp_path: Path) -> None:
    made = corpus(tmp_path, [TEXT, FIGURE], [TABLE, TEXT])
    text, table, again = requests(Scenario("", ("sixteen",)), made)
    assert (text.prompt_tokens, text.answer_tokens) == (again.prompt_tokens, again.answer_tokens)
    assert table.prompt_tokens > 4 * text.prompt_tokens
    assert all(request.complete for request in (text, table, again)), "the budgets hold the whole text"


def test_the_ideal_is_that_of_the_gpu_alone_and_scales_with_slow_motion(tmp_path: Path) -> None:
    made = corpus(tmp_path, [TEXT])
    once = ideal_s(Scenario("", ("sixteen",)), made)
    [request] = requests(Scenario("", ("sixteen",)), made)
    assert once == pytest.approx(alone(request))
    assert ideal_s(Scenario("", ("sixteen",), slowed=3.0), made) == pytest.approx(3 * once)
    assert ideal_s(Scenario("", ("sixteen",), gpu="G0"), made) == 0


def alone(request: Request) -> float:
    """A prefill, which yields the first token, and a step for every further one."""
    return request.prompt_tokens / 100_000 + (request.answer_tokens - 1) * (0.003 + 0.000_03)
