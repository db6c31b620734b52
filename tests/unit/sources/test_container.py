import gzip
import io
import itertools
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from handler.errors import ArchiveRefused, DocumentTooLarge, UnsupportedFormat, WorkerError
from handler.sources.container import RATIO_FREE_BYTES, unpack
from handler.sources.fetched import Fetched
from tests.unit.sources.conftest import PDF, zipped

LIMIT = 512 * 1024 * 1024


def opened(tmp_path: Path, content: bytes, limit: int = LIMIT, name: str | None = None) -> Fetched:
    packed = tmp_path / "packed"
    packed.write_bytes(content)
    return unpack(Fetched(packed, name), tmp_path / "unpacked", limit)


def tampered(content: bytes, at: int, value: bytes) -> bytes:
    return content[:at] + value + content[at + len(value) :]


def directory_at(archive: bytes) -> int:
    return archive.index(b"PK\x01\x02")


def test_what_is_no_container_stays_where_it_is(tmp_path: Path) -> None:
    assert opened(tmp_path, PDF).path == tmp_path / "packed"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_only_document_of_a_zip_is_taken_whatever_clutter_lies_beside_it(tmp_path: Path, method: int) -> None:
    archive = zipped(
        ("__MACOSX/._scan.pdf", b"x"), (".DS_Store", b"x"), ("in/", b""), ("in/scan.pdf", PDF), method=method
    )
    fetched = opened(tmp_path, archive)
    assert (fetched.path.read_bytes(), fetched.name) == (PDF, "scan.pdf")


def test_a_name_that_points_elsewhere_is_only_a_name(tmp_path: Path) -> None:
    fetched = opened(tmp_path, zipped(("../../etc/cron.d/evil.pdf", PDF)))
    assert (fetched.path, fetched.name) == (tmp_path / "unpacked", "evil.pdf")


def test_gzip_is_unpacked_and_loses_its_suffix(tmp_path: Path) -> None:
    fetched = opened(tmp_path, gzip.compress(PDF, mtime=0), name="scan.pdf.gz")
    assert (fetched.path.read_bytes(), fetched.name) == (PDF, "scan.pdf")


def tar_gz() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("scan.pdf"))
    return gzip.compress(buffer.getvalue())


def many_entries() -> bytes:
    return zipped(*((f"page-{number}.pdf", PDF) for number in range(101)))


def zip64_that_hides_its_directory() -> bytes:
    archive = zipped(("scan.pdf", PDF))
    end = archive.rindex(b"PK\x05\x06")
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 1, 1, 2**31, 0)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, end, 1)
    return archive[:end] + record + locator + archive[end:]


ENCRYPTED = tampered(zipped(("a.pdf", PDF)), directory_at(zipped(("a.pdf", PDF))) + 8, b"\x01\x00")
WRONG_CHECKSUM = zipped(("a.pdf", PDF), method=zipfile.ZIP_STORED).replace(b"Catalog", b"Cat4log", 1)
OTHER_METHOD = tampered(zipped(("a.pdf", PDF)), directory_at(zipped(("a.pdf", PDF))) + 10, b"\x63\x00")


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (zipped(), ArchiveRefused, "0 files"),
        (zipped(("a.pdf", PDF), ("b.pdf", PDF)), ArchiveRefused, "2 files"),
        (many_entries(), ArchiveRefused, "101 files"),
        (zipped(("inner.zip", zipped(("a.pdf", PDF)))), ArchiveRefused, "another archive"),
        (zipped(("inner.gz", gzip.compress(PDF, mtime=0))), ArchiveRefused, "another archive"),
        (gzip.compress(gzip.compress(PDF, mtime=0)), ArchiveRefused, "another archive"),
        (zipped(("[Content_Types].xml", b"<x/>"), ("word/document.xml", b"<x/>")), UnsupportedFormat, "Office"),
        (zipped(("mimetype", b"application/epub+zip"), ("a.xhtml", b"")), UnsupportedFormat, "e-book"),
        (zipped(("a.pdf", PDF))[:-30], ArchiveRefused, "cut short"),
        (
            zipped(("a.pdf", PDF * 50), method=zipfile.ZIP_STORED).replace(b"Catalog", b"Cat4log", 1),
            ArchiveRefused,
            "damaged",
        ),
        (gzip.compress(PDF * 100, mtime=0)[:-12], ArchiveRefused, "damaged"),
        (gzip.compress(PDF, mtime=0) + b"trailing", ArchiveRefused, "damaged"),
        (gzip.compress(PDF, mtime=0)[:-8] + b"\0" * 8, ArchiveRefused, "damaged"),
        (b"PK\x03\x04 and nothing else", ArchiveRefused, "cut short"),
        (b"\x1f\x8bnothing", ArchiveRefused, "damaged"),
        (ENCRYPTED, ArchiveRefused, "encrypted"),
        (OTHER_METHOD, ArchiveRefused, "method"),
        (zipped(("a.pdf", PDF), method=zipfile.ZIP_LZMA), ArchiveRefused, "method"),
        (zip64_that_hides_its_directory(), ArchiveRefused, "ZIP64"),
    ],
    ids=itertools.count(),
)
def test_archives_that_are_refused(tmp_path: Path, content: bytes, error: type[WorkerError], says: str) -> None:
    with pytest.raises(error, match=says):
        opened(tmp_path, content)


def test_a_bomb_is_stopped_by_its_ratio_and_by_the_size_limit(tmp_path: Path) -> None:
    packer = zlib.compressobj(9, wbits=31)
    block = b"\0" * (1024 * 1024)
    bomb = b"".join(packer.compress(block) for _ in range(RATIO_FREE_BYTES // len(block) + 2)) + packer.flush()
    with pytest.raises(ArchiveRefused, match="times its size"):
        opened(tmp_path, bomb)
    with pytest.raises(DocumentTooLarge):
        opened(tmp_path, bomb, limit=1_000_000)
