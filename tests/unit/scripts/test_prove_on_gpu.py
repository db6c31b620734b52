from pathlib import Path

import pymupdf

from scripts.prove_on_gpu import LINES_PER_PAGE, Proof, known_pages, occupancy_chart, recall_of, report, write_pdf


def test_the_document_has_its_pages_and_no_two_are_alike(tmp_path: Path) -> None:
    pages = known_pages(5)
    write_pdf(pages, tmp_path / "document.pdf")
    with pymupdf.open(tmp_path / "document.pdf") as document:
        texts = [page.get_text() for page in document]
    assert len(set(texts)) == 5
    assert [text.splitlines() for text in texts] == pages
    assert len(pages[0]) == LINES_PER_PAGE + 1


def test_words_count_on_their_own_page_only() -> None:
    pages = [["one two"], ["three four"]]
    swapped = {"pages": [{"page": 1, "regions": [{"text": "three four"}]}, {"page": 2, "regions": []}]}
    half = {"pages": [{"page": 1, "regions": [{"text": "Two"}, {"text": "one"}]}]}
    assert recall_of(pages, swapped) == 0
    assert recall_of(pages, half) == 0.5


def test_goals_scale_with_the_pages_and_are_named_when_missed() -> None:
    assert Proof(read_s=299, recall=0.96).missed(155) == []
    slow = Proof(read_s=301, recall=0.5).missed(155)
    assert slow == ["301 s for 155 pages, goal 300 s", "50.0% of the words came back, goal 95%"]
    assert Proof(read_s=299, recall=1).missed(31) != []


def test_the_chart_shows_occupancy_over_time() -> None:
    chart = occupancy_chart([(1.0, 0, 10, 0), (2.0, 1, 20, 5)])
    first, second = chart.splitlines()
    assert first.count("#") == 30
    assert second.count("#") == 60
    assert "5.0 queued" in second
    assert occupancy_chart([]) == "no samples"


def test_the_report_can_be_attached() -> None:
    output = {
        "produced_by": {"engine": "sglang"},
        "status": "complete",
        "counts": {},
        "debug": {"boot": {"seconds": {}}},
    }
    text = report(Proof(boot_s=40, read_s=100, recall=0.99, output=output), 155)
    assert "all goals met" in text
    assert "155 pages in 100.0 s (1.55 pages/s)" in text
