"""The configured S3 bucket, for documents and for results."""

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from handler.settings import Settings

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

S3_CONFIG = Config(
    signature_version="s3v4",
    s3={"addressing_style": "path"},
    request_checksum_calculation="when_required",
    response_checksum_validation="when_required",
    connect_timeout=10,
    read_timeout=60,
    retries={"mode": "standard", "max_attempts": 4},
)
"""Checksums only where required and path-style addresses: stores other than AWS refuse boto3's newer defaults."""


def bucket_client(settings: Settings) -> "S3Client | None":
    """An S3 client for the configured bucket; None when none is configured."""
    if not settings.bucket_name or not settings.bucket_endpoint_url:
        return None
    key, secret = settings.bucket_access_key_id, settings.bucket_secret_access_key
    return boto3.client(
        "s3",
        endpoint_url=settings.bucket_endpoint_url,
        aws_access_key_id=key.get_secret_value() if key else None,
        aws_secret_access_key=secret.get_secret_value() if secret else None,
        region_name=settings.bucket_region,
        config=S3_CONFIG,
    )
