"""`s3_uri`: an object of the configured bucket, and of no other."""

import time
from collections.abc import Iterator
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from handler.bucket import bucket_client
from handler.errors import PathRefused, SourceNotFound, SourceUnavailable, UrlRefused
from handler.settings import Settings
from handler.sources.fetched import CHUNK_BYTES, Fetched, too_large, write_limited
from handler.sources.volume import own

KEY_BYTES_LIMIT = 1024
"""S3's own limit for a key."""


def download(uri: str, settings: Settings, path: Path) -> Fetched:
    """Copy the object into `path`, within the size limit and the download deadline."""
    bucket, key = _bucket_and_key(uri)
    client = bucket_client(settings)
    if client is None or bucket != settings.bucket_name:
        raise UrlRefused("s3_uri must name the configured bucket (BUCKET_NAME)")
    limit = settings.max_document_bytes
    try:
        answer = client.get_object(Bucket=bucket, Key=key)
        if answer["ContentLength"] > limit:
            raise too_large(limit)
        body = answer["Body"].iter_chunks(CHUNK_BYTES)
        write_limited(_within(body, settings.download_timeout_s), path, limit)
    except ClientError as error:
        raise _client_error(error) from None
    except BotoCoreError as error:
        raise SourceUnavailable(f"the bucket cannot be read: {type(error).__name__}") from None
    return Fetched(path, key.rsplit("/", 1)[-1])


def _bucket_and_key(uri: str) -> tuple[str, str]:
    if not uri.startswith("s3://"):
        raise UrlRefused("s3_uri must have the form s3://bucket/key")
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    parts = key.split("/")
    if not bucket or not key or len(key.encode(errors="replace")) > KEY_BYTES_LIMIT:
        raise UrlRefused("s3_uri must have the form s3://bucket/key")
    if any(part in ("", ".", "..") for part in parts) or not key.isprintable():
        raise PathRefused("the key of s3_uri has an empty, '.' or '..' part, or a control character")
    if own(parts):
        raise PathRefused(f"{parts[0]}/ in the bucket is not readable as a document")
    return bucket, key


def _client_error(error: ClientError) -> Exception:
    code = error.response.get("Error", {}).get("Code", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if status >= 500 or status == 429 or code == "SlowDown":
        return SourceUnavailable(f"the bucket answered {status} {code}")
    return SourceNotFound(f"the object cannot be read: the bucket answered {status} {code}")


def _within(chunks: Iterator[bytes], seconds: float) -> Iterator[bytes]:
    deadline = time.monotonic() + seconds
    for chunk in chunks:
        if time.monotonic() > deadline:
            raise SourceUnavailable(f"the object did not arrive within {seconds:g} s (DOWNLOAD_TIMEOUT_S)")
        yield chunk
