import base64
import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.errors import (
    DocumentTooLarge,
    EmptyFile,
    InvalidBase64,
    NoSource,
    SeveralSources,
    UnsupportedFormat,
    WorkerError,
)
from handler.schema import DocumentKind, JobInput
from handler.settings import Settings
from handler.sources.staging import stage
from tests.unit.sources.conftest import PDF, zipped

SettingsWith = Callable[..., Settings]


def inline(content: bytes, filename: str | None = None) -> JobInput:
    return JobInput(file_base64=base64.b64encode(content).decode(), filename=filename)


@pytest.mark.parametrize("pack", [lambda b: b, gzip.compress, lambda b: zipped(("other.txt", b))])
async def test_the_hash_is_that_of_the_unpacked_bytes(
    settings_with: SettingsWith, staging_folder: Path, png: bytes, pack: Callable[[bytes], bytes]
) -> None:
    document = await stage(inline(pack(png), "../in/scan\n.pdf"), settings_with(), staging_folder)
    assert document.kind is DocumentKind.PNG
    assert document.sha256 == hashlib.sha256(png).hexdigest()
    assert (document.size, document.filename) == (len(png), "scan.pdf")
    assert document.path.read_bytes() == png
    assert not (staging_folder / "fetched").exists()
    assert not (staging_folder / "unpacked").exists()


async def test_junk_before_a_pdf_is_cut_off_but_hashed(settings_with: SettingsWith, staging_folder: Path) -> None:
    content = b"--boundary\r\n\r\n" + PDF
    document = await stage(inline(content), settings_with(), staging_folder)
    assert document.path.read_bytes() == PDF
    assert (document.sha256, document.size) == (hashlib.sha256(content).hexdigest(), len(content))


async def test_the_volume_is_a_source_with_a_name(
    settings_with: SettingsWith, volume: Path, staging_folder: Path
) -> None:
    (volume / "a.pdf").write_bytes(PDF)
    document = await stage(JobInput(volume_path="a.pdf", password="pw"), settings_with(), staging_folder)
    assert (document.kind, document.filename, document.password) == (DocumentKind.PDF, "a.pdf", "pw")
    assert "pw" not in repr(document)


@pytest.mark.parametrize(
    ("job", "error"),
    [
        (JobInput(), NoSource),
        (JobInput(file_base64="", volume_path="a"), SeveralSources),
        (JobInput(file_base64=""), EmptyFile),
        (inline(gzip.compress(b"")), EmptyFile),
        (inline(zipped(("a.pdf", b""))), EmptyFile),
        (inline(b"hello"), UnsupportedFormat),
        (JobInput(file_base64="a"), InvalidBase64),
        (JobInput(file_base64="abc"), InvalidBase64),
        (JobInput(file_base64="ab=c"), InvalidBase64),
        (JobInput(file_base64="abcd\nabcd"), InvalidBase64),
        (JobInput(file_base64="ab_-"), InvalidBase64),
        (JobInput(file_base64="é" * 4), InvalidBase64),
        (JobInput(file_base64="data:application/pdf;base64,abcd"), InvalidBase64),
        (inline(b"\0" * 2_000_001), DocumentTooLarge),
        (inline(gzip.compress(b"\0" * 2_000_001)), DocumentTooLarge),
    ],
)
async def test_inputs_that_are_refused(
    settings_with: SettingsWith, staging_folder: Path, job: JobInput, error: type[WorkerError]
) -> None:
    with pytest.raises(WorkerError) as caught:
        await stage(job, settings_with(), staging_folder)
    assert type(caught.value) is error
