"""Archives of one document are unpacked as the worker would, so that both sides know the document by the same bytes."""

import gzip
import io
import zipfile

import pytest
from glmocr_runpod import Client
from glmocr_runpod.kit import Kit
from glmocr_runpod.packing import unpacked
from glmocr_runpod.sources import read_source

from tests.client import scans
from tests.client.reading import Reading
from tests.client.rig import Rig

PDF = b"%PDF-1.7 a document"


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


@pytest.mark.parametrize(
    "archive",
    [
        PDF,
        gzip.compress(PDF),
        zipped(**{"in/a.pdf": PDF}),
        zipped(**{"a.pdf": PDF, "__MACOSX/a.pdf": b"x", ".DS_Store": b"x"}),
    ],
    ids=["as it is", "gzip", "zip", "zip of a Mac"],
)
def test_the_one_document_inside(archive: bytes) -> None:
    assert unpacked(archive) == PDF
    assert read_source(archive).digest == read_source(PDF).digest


@pytest.mark.parametrize(
    "archive",
    [
        zipped(**{"a.pdf": PDF, "b.pdf": PDF}),
        zipped(),
        zipped(**{"empty.pdf": b""}),
        zipped(**{"a.zip": zipped(**{"a.pdf": PDF})}),
        gzip.compress(gzip.compress(PDF)),
        gzip.compress(PDF)[:-4],
        zipped(**{"a.pdf": PDF})[:-30],
    ],
    ids=["two", "none", "empty", "zip in zip", "gzip in gzip", "cut gzip", "cut zip"],
)
def test_what_the_worker_refuses_is_left_to_it(archive: bytes) -> None:
    assert unpacked(archive) == archive


def test_a_large_archive_is_divided_like_its_document(rig: Rig) -> None:
    scan = scans.scan(50, range(1, 5), grain=15)
    reading = Reading()
    kit = Kit(body_limit=len(scan) // 2)
    with Client(config=rig.config, kit=kit) as client, rig.worker(reading):
        document = client.parse(zipped(**{"scan.pdf": scan}), name="scan.zip")
        assert client.parse(scan, name="scan.pdf").pages == document.pages
    assert [page.regions[0].text for page in document.pages] == [f"page {number}" for number in range(1, 5)]
    assert len(rig.jobs()) == len(reading.sent) > 1
