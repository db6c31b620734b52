"""The transport ladder end to end: what is sent, what comes back, and what it says about itself."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from glmocr_runpod import Client, Consent, Options
from glmocr_runpod.errors import ConfigError, JobFailed, TooLarge
from glmocr_runpod.kit import Kit
from glmocr_runpod.shrink import Shrunk

from emulator.jobs import Job
from handler.schema import ErrorCode, ErrorInfo
from tests.client import scans
from tests.client.reading import Reading, page_texts, pdf_result, streams
from tests.client.rig import Rig, decoded

PAGES = range(1, 8)


@pytest.fixture(scope="module")
def scan() -> bytes:
    """Seven pages of about 90 KB."""
    return scans.scan(50, PAGES, grain=15)


def client(rig: Rig, **kit: object) -> Client:
    return Client(config=rig.config, kit=Kit(**kit))  # type: ignore[arg-type]


def texts(numbers: Sequence[int]) -> list[str]:
    return [f"page {number}" for number in numbers]


def test_small_documents_go_as_they_are(rig: Rig, scan: bytes) -> None:
    reading = Reading()
    with client(rig) as one, rig.worker(reading):
        document = one.parse(scan, name="scan.pdf")
    assert reading.sent == [scan]
    assert document.transport == ()


def test_compressible_documents_are_packed(rig: Rig) -> None:
    plain = scans.scan(50, [1], grain=0) + b"% nothing" * 100_000
    reading = Reading()
    with client(rig, body_limit=400_000) as one, rig.worker(reading):
        document = one.parse(plain, name="plain.pdf")
    assert reading.sent == [plain]
    assert [step["step"] for step in document.transport] == ["gzip"]


def test_large_scans_are_divided_without_loss(rig: Rig, scan: bytes) -> None:
    reading = Reading()
    limit = len(scan) // 2
    with client(rig, body_limit=limit) as one, rig.worker(reading):
        document = one.parse(scan, name="scan.pdf")
        again = one.parse(scan, name="scan.pdf")
    assert [page.page for page in document.pages] == list(PAGES)
    assert [page.regions[0].text for page in document.pages] == texts(PAGES)
    assert document.markdown.split() == " ".join(texts(PAGES)).split()
    assert document.status == "complete"
    assert document.output.document is not None
    assert document.output.document.sha256 == hashlib.sha256(scan).hexdigest()
    parts = sorted(reading.sent, key=page_texts)
    assert sum((streams(part) for part in parts), []) == streams(scan)  # noqa: RUF017 - a handful
    assert all(len(part) * 4 / 3 < limit for part in parts)
    assert [step["step"] for step in document.transport] == ["gzip", "split"]
    assert len(rig.jobs()) == len(parts) > 2
    assert again.pages == document.pages
    assert not [blob for blob in (rig.state / "blobs").iterdir() if blob.read_bytes()[:5] == b"%PDF-"]


def test_the_parts_are_the_same_after_a_restart(rig: Rig, scan: bytes) -> None:
    limit = len(scan) // 2
    with client(rig, body_limit=limit) as one:
        reference = one.submit(scan, name="scan.pdf")
    first = {job.input["file_base64"] for job in rig.jobs()}
    reading = Reading()
    with rig.worker(reading), client(rig, body_limit=limit * 3) as other:
        assert len(other.parse(scan, name="scan.pdf").pages) == 7
        assert len(other.attach(reference[:12]).pages) == 7
    assert {job.input["file_base64"] for job in rig.jobs()} == first
    assert len(rig.jobs()) == len(first)


def test_only_the_pages_asked_for_are_sent(rig: Rig, scan: bytes) -> None:
    reading = Reading()
    with client(rig, body_limit=len(scan) // 2) as one, rig.worker(reading):
        document = one.parse(scan, Options(pages="2,4-6"), name="scan.pdf")
    assert [(page.page, page.regions[0].text) for page in document.pages] == [(n, f"page {n}") for n in (2, 4, 5, 6)]
    assert sum(len(page_texts(part)) for part in reading.sent) == 4


def test_long_documents_are_read_by_several_jobs(rig: Rig, scan: bytes) -> None:
    reading = Reading()
    with client(rig, pages_per_job=3) as one, rig.worker(reading):
        document = one.parse(scan, name="scan.pdf")
    assert reading.sent == [scan] * 3
    assert sorted(job.input["pages"] for job in rig.jobs()) == ["1-2", "3-4", "5-7,8-"]
    assert [page.regions[0].text for page in document.pages] == texts(PAGES)


def test_pages_that_the_document_does_not_count_are_asked_for(rig: Rig, scan: bytes) -> None:
    async def answer(job: Job) -> dict[str, object]:
        data = decoded(job.input)
        assert data == lying
        return {"output": pdf_result(job.input, scan)}

    lying = scan.replace(b"/Count 7", b"/Count 4")
    with client(rig, pages_per_job=2) as one, rig.worker(answer):
        document = one.parse(lying, name="scan.pdf")
    assert [page.page for page in document.pages] == list(PAGES)
    assert document.output.document is not None
    assert document.output.document.page_count == 7


def test_pages_that_dividing_cannot_see_are_told(rig: Rig, scan: bytes) -> None:
    lying = scan.replace(b"/Count 7", b"/Count 4")
    with client(rig, body_limit=len(scan) // 2) as one, rig.worker(Reading()):
        document = one.parse(lying, name="scan.pdf")
    assert len(document.pages) == 4
    (told,) = [step for step in document.transport if "counts" in step["detail"]]
    assert told["facts"] == {"counted": 4, "found": 7}


@pytest.mark.parametrize("pages", ["9", "3-1", "0-2"])
def test_a_selection_that_the_worker_would_refuse_is_refused_before_dividing(rig: Rig, scan: bytes, pages: str) -> None:
    with client(rig, body_limit=len(scan) // 2) as one, pytest.raises(ConfigError, match="pages"):
        one.parse(scan, Options(pages=pages), name="scan.pdf")
    assert rig.jobs() == []


def test_a_page_that_nothing_carried_is_tried_again_with_consent(rig: Rig) -> None:
    large, small = scans.scan(150, [3]), scans.scan(30, [3])
    mixed = scans.joined(scans.scan(40, [1, 2], grain=15), large)
    limit = len(mixed) // 2
    with client(rig, body_limit=limit) as one, rig.worker(Reading()):
        assert [page.status for page in one.parse(mixed, name="mixed.pdf").pages] == ["ok", "ok", "failed"]
    kit = Kit(body_limit=limit, shrinker=lambda data, limit: Shrunk(small, 150, "smaller"))
    with Client(config=rig.config, kit=kit) as one, rig.worker(Reading()):
        assert one.parse(mixed, name="mixed.pdf").status == "partial"
    with Client(config=rig.config, kit=kit, resubmit={Consent.STORED}) as one, rig.worker(Reading()):
        assert one.parse(mixed, name="mixed.pdf").status == "complete"


def test_one_part_that_fails_costs_its_pages_only(rig: Rig, scan: bytes) -> None:
    reading = Reading()

    async def answer(job):  # type: ignore[no-untyped-def]
        if job.input["pages"] == "3-4":
            error = ErrorInfo(code=ErrorCode.NO_PAGE_READABLE, message="nothing there", retryable=False)
            return {"error": error.model_dump_json()}
        return await reading(job)

    with client(rig, pages_per_job=3) as one, rig.worker(answer):
        document = one.parse(scan, name="scan.pdf")
    assert [page.status for page in document.pages] == ["ok", "ok", "failed", "failed", "ok", "ok", "ok"]
    assert document.status == "partial"


def test_all_parts_failing_is_a_failure(rig: Rig, scan: bytes) -> None:
    async def answer(job):  # type: ignore[no-untyped-def]
        return {"error": ErrorInfo(code=ErrorCode.DOCUMENT_UNREADABLE, message="no", retryable=False).model_dump_json()}

    with client(rig, pages_per_job=3) as one, rig.worker(answer), pytest.raises(JobFailed, match="no"):
        one.parse(scan, name="scan.pdf")


def test_a_single_page_over_the_limit_is_shrunk(rig: Rig, scan: bytes) -> None:
    small = scans.scan(30, [1])
    asked: list[int] = []

    def shrinker(data: bytes, limit: int) -> Shrunk:
        asked.append(limit)
        return Shrunk(small, 150, "smaller")

    large = scans.scan(100, [1])
    reading = Reading()
    with client(rig, body_limit=len(large), shrinker=shrinker) as one, rig.worker(reading):
        document = one.parse(large, name="page.pdf")
    assert reading.sent == [small]
    (step,) = [step for step in document.transport if step["step"] == "ghostscript"]
    assert step["facts"]["dpi"] == 150
    assert asked[0] < len(large) * 3 / 4


@pytest.mark.parametrize(
    ("kit", "said"),
    [
        ({"shrinker_missing": "the gs program is not installed"}, "gs program is not installed"),
        ({"shrinker": lambda data, limit: Shrunk(data, None, "page 1 changed")}, "page 1 changed"),
    ],
)
def test_a_page_that_nothing_carries_is_a_failed_page(rig: Rig, kit: dict[str, object], said: str) -> None:
    mixed = scans.joined(scans.scan(40, [1, 2], grain=15), scans.scan(150, [3]), scans.scan(40, [4], grain=15))
    reading = Reading()
    with client(rig, body_limit=len(mixed) // 2, **kit) as one, rig.worker(reading):
        document = one.parse(mixed, name="mixed.pdf")
        assert one.parse(mixed, name="mixed.pdf").pages == document.pages
    assert [page.status for page in document.pages] == ["ok", "ok", "failed", "ok"]
    assert said in (document.pages[2].message or "")
    assert [item.page for item in document.output.degraded.items] == [3]
    assert any(said in step["detail"] for step in document.transport)
    assert sum(len(page_texts(part)) for part in reading.sent) == 3


@pytest.mark.parametrize(
    ("kit", "said"),
    [
        ({"shrinker_missing": "the gs program is not installed"}, "gs program is not installed"),
        ({"shrinker": lambda data, limit: Shrunk(data, None, "page 1 changed")}, "page 1 changed"),
    ],
)
def test_what_cannot_be_carried_says_why_and_is_not_sent(rig: Rig, kit: dict[str, object], said: str) -> None:
    large = scans.scan(100, [1])
    with client(rig, body_limit=len(large), **kit) as one, pytest.raises(TooLarge, match=said) as caught:
        one.parse(large, name="page.pdf")
    assert "bucket" in caught.value.message
    assert rig.jobs() == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x89PNG" + bytes(range(256)) * 2000, "only a PDF"),
        (b"%PDF-1.7 " + hashlib.sha256(b"x").digest() * 9000, "cannot be opened"),
    ],
)
def test_other_large_files_need_storage(rig: Rig, data: bytes, said: str) -> None:
    noise = b"".join(hashlib.sha256(bytes([i, j])).digest() for i in range(100) for j in range(100))
    with client(rig, body_limit=200_000) as one, pytest.raises(TooLarge, match=said):
        one.parse(data + noise, name="x")
    assert rig.jobs() == []


def test_a_part_that_shows_less_is_never_sent(rig: Rig, scan: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    from glmocr_runpod import pdf

    blank = scans.scan(50, [1], grain=0)
    monkeypatch.setattr(pdf, "cut", lambda data, pages: blank)
    with client(rig, body_limit=len(scan) // 2) as one, pytest.raises(TooLarge, match="would lose something"):
        one.parse(scan, name="scan.pdf")
    assert rig.jobs() == []


def test_addresses_are_the_workers_to_fetch(rig: Rig, tmp_path: Path) -> None:
    async def answer(job):  # type: ignore[no-untyped-def]
        return {
            "error": ErrorInfo(
                code=ErrorCode.URL_REFUSED, message=job.input["file_url"], retryable=False
            ).model_dump_json()
        }

    with client(rig) as one, rig.worker(answer), pytest.raises(JobFailed, match=r"https://example\.org/a\.pdf"):
        one.parse("https://example.org/a.pdf")
    (job,) = rig.jobs()
    assert job.input["filename"] == "a.pdf"
