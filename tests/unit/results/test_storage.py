import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from pydantic import SecretStr

from handler.bucket import bucket_client
from handler.errors import StorageUnavailable
from handler.results.storage import S3Storage, VolumeStorage
from handler.settings import Settings
from tests.support.servers import s3_server


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as address:
        yield address


def settings(url: str | None) -> Settings:
    return Settings(
        bucket_endpoint_url=url,
        bucket_name="results",
        bucket_region="us-east-1",
        bucket_access_key_id=SecretStr("id"),
        bucket_secret_access_key=SecretStr("secret"),
    )


@pytest.fixture
def bucket(s3_url: str) -> S3Storage:
    client = bucket_client(settings(s3_url))
    assert client is not None
    client.create_bucket(Bucket="results")
    return S3Storage(client, "results")


async def test_stored_in_the_bucket_under_our_prefix_with_a_signed_address(bucket: S3Storage) -> None:
    stored = await bucket.put("ab/result.json", b"{}", "application/json")
    assert stored.key == "glmocr/results/ab/result.json"
    assert stored.url is not None
    assert "secret" not in stored.url
    got = await asyncio.to_thread(requests.get, stored.url, timeout=5)
    assert got.content == b"{}"


async def test_a_bucket_that_refuses_is_named_without_its_secrets(s3_url: str) -> None:
    client = bucket_client(settings(s3_url))
    with pytest.raises(StorageUnavailable, match="NoSuchBucket") as caught:
        await S3Storage(client, "absent").put("ab/result.json", b"{}", "application/json")
    assert caught.value.retryable
    assert "secret" not in caught.value.message


def test_no_bucket_configured_is_no_client() -> None:
    assert bucket_client(settings(None)) is None


@pytest.mark.parametrize("name", ["../x", "a/../b", "/a", "a//b", "a/..", "a\0b", "a b", ""])
async def test_only_names_of_ours_are_stored(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="storage name"):
        await VolumeStorage(tmp_path, tmp_path).put(name, b"", "text/plain")


async def test_a_read_only_volume_is_unavailable(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    with pytest.raises(StorageUnavailable, match="volume refused"):
        await VolumeStorage(blocked / "results", blocked).put("ab/result.json", b"{}", "text/plain")
