from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest

from handler.errors import DocumentTooLarge, PathRefused, SourceNotFound, SourceUnavailable, UrlRefused, WorkerError
from handler.settings import Settings
from handler.sources.s3 import download
from tests.support.servers import s3_server

SettingsWith = Callable[..., Settings]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with s3_server() as address:
        client = boto3.client(
            "s3",
            endpoint_url=address,
            aws_access_key_id="id",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )
        for bucket in ("documents", "others"):
            client.create_bucket(Bucket=bucket)
        client.put_object(Bucket="documents", Key="in/scan.pdf", Body=b"content")
        client.put_object(Bucket="documents", Key="in/big.pdf", Body=b"x" * 2001)
        client.put_object(Bucket="documents", Key="glmocr/results/a.json", Body=b"{}")
        client.put_object(Bucket="others", Key="a.pdf", Body=b"private")
        yield address


@pytest.fixture
def bucket_settings(settings_with: SettingsWith, endpoint: str) -> Settings:
    return settings_with(
        bucket_endpoint_url=endpoint,
        bucket_name="documents",
        bucket_access_key_id="id",
        bucket_secret_access_key="secret",
        max_document_bytes=2000,
    )


def test_an_object_of_the_configured_bucket_is_copied(bucket_settings: Settings, tmp_path: Path) -> None:
    fetched = download("s3://documents/in/scan.pdf", bucket_settings, tmp_path / "f")
    assert (fetched.path.read_bytes(), fetched.name) == (b"content", "scan.pdf")


@pytest.mark.parametrize(
    ("uri", "error"),
    [
        ("s3://others/a.pdf", UrlRefused),
        ("http://documents/in/scan.pdf", UrlRefused),
        ("s3://documents", UrlRefused),
        ("s3://documents/", UrlRefused),
        ("s3:///a.pdf", UrlRefused),
        ("s3://documents/" + "k" * 1025, UrlRefused),
        ("s3://documents/glmocr/results/a.json", PathRefused),
        ("s3://documents/in/../glmocr/results/a.json", PathRefused),
        ("s3://documents//glmocr/results/a.json", PathRefused),
        ("s3://documents/in/a\0.pdf", PathRefused),
        ("s3://documents/in/absent.pdf", SourceNotFound),
        ("s3://documents/in/big.pdf", DocumentTooLarge),
    ],
)
def test_what_is_not_read(bucket_settings: Settings, tmp_path: Path, uri: str, error: type[WorkerError]) -> None:
    with pytest.raises(WorkerError) as caught:
        download(uri, bucket_settings, tmp_path / "f")
    assert type(caught.value) is error


def test_without_a_bucket_nothing_is_read(settings_with: SettingsWith, tmp_path: Path) -> None:
    with pytest.raises(UrlRefused, match="BUCKET_NAME"):
        download("s3://documents/in/scan.pdf", settings_with(), tmp_path / "f")


def test_a_bucket_that_does_not_answer_is_unavailable(settings_with: SettingsWith, tmp_path: Path) -> None:
    closed = settings_with(
        bucket_endpoint_url="http://127.0.0.1:9",
        bucket_name="documents",
        bucket_access_key_id="id",
        bucket_secret_access_key="secret",
    )
    with pytest.raises(SourceUnavailable) as caught:
        download("s3://documents/a.pdf", closed, tmp_path / "f")
    assert "secret" not in str(caught.value)
