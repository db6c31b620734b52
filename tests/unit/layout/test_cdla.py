from pathlib import Path

import numpy as np
import pymupdf
import pytest

from handler.geometry import PixelBox
from handler.layout.cdla import Cdla, in_order, is_printed_text, with_document_title
from handler.layout.detector import Detection, Pixels
from handler.schema import Label

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture(scope="module")
def detector() -> Cdla:
    return Cdla()


def page(name: str, number: int) -> Pixels:
    with pymupdf.open(EXAMPLES / name) as document:
        pixmap = document[number].get_pixmap(dpi=150)
        return np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width, 3)


def test_what_the_model_logs_while_it_loads_goes_to_our_log(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "handler.layout.cdla"):
        Cdla()
    assert "onnxruntime" in caplog.text
    with caplog.at_level("WARNING", "handler.layout.cdla"):
        caplog.clear()
        Cdla()
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["agreement.pdf", "scan.pdf"])
def test_a_page_with_a_table(detector: Cdla, name: str) -> None:
    [found] = detector.detect([page(name, 1)])
    labels = [d.label for d in found]
    assert labels[0] is Label.HEADER
    assert labels[-1] is Label.FOOTER
    assert labels.count(Label.TABLE) == 1
    tops = [d.box.y0 for d in found]
    assert tops == sorted(tops)


@pytest.mark.parametrize("name", ["agreement.pdf", "scan.pdf"])
def test_two_columns_are_two_regions_and_the_left_one_comes_first(detector: Cdla, name: str) -> None:
    [found] = detector.detect([page(name, 2)])
    columns = [d.box for d in found if d.label is Label.TEXT and d.box.height > 250]
    assert len(columns) == 2
    assert columns[0].x1 < columns[1].x0


def test_a_white_page_has_no_regions(detector: Cdla) -> None:
    assert detector.detect([np.full((800, 600, 3), 255, np.uint8)]) == [[]]


def test_printed_text_is_told_from_a_picture() -> None:
    text = page("agreement.pdf", 0)
    assert is_printed_text(text)
    gradient = np.broadcast_to(np.linspace(0, 255, 600, dtype=np.uint8)[None, :, None], (400, 600, 3))
    assert not is_printed_text(np.ascontiguousarray(gradient))


def test_headers_come_first_and_footers_last_wherever_they_stand() -> None:
    body = Detection(Label.TEXT, PixelBox(0, 0, 500, 90), 0.9)
    footer = Detection(Label.FOOTER, PixelBox(0, 100, 500, 190), 0.9)
    header = Detection(Label.HEADER, PixelBox(0, 200, 500, 290), 0.9)
    assert in_order([footer, body, header]) == [header, body, footer]


def titles(*heights: int) -> list[Detection]:
    return [
        Detection(Label.PARAGRAPH_TITLE, PixelBox(0, 100 * n, 300, 100 * n + h), 0.9) for n, h in enumerate(heights)
    ]


def test_a_title_that_opens_the_page_and_is_the_largest_is_the_documents() -> None:
    assert [d.label for d in with_document_title(titles(60, 30, 31))] == [
        Label.DOC_TITLE,
        Label.PARAGRAPH_TITLE,
        Label.PARAGRAPH_TITLE,
    ]


def test_a_title_like_the_others_or_a_lone_one_stays_what_it_is() -> None:
    assert with_document_title(titles(32, 30, 31)) == titles(32, 30, 31)
    assert with_document_title(titles(60)) == titles(60)
    assert with_document_title([]) == []
