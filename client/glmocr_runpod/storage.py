"""The bucket and the network volume, both reached through S3: uploads of large documents, results that were left there.

Needs the extra `s3`.
"""

import io
import re
from dataclasses import dataclass
from typing import Any, Protocol

from glmocr_runpod.config import Config
from glmocr_runpod.contract import Delivery, JsonObject
from glmocr_runpod.delivery import ResultStore
from glmocr_runpod.errors import MissingExtra, Rejected, Unreachable

UPLOADS = "glmocr-uploads"
"""Beside the worker's own folder, which jobs may not read from."""
RESULTS = "glmocr/results"
PART_BYTES = 64 * 1024 * 1024
"""The volume's S3 interface takes parts of 500 MB at most."""
ABSENT = frozenset({"404", "NoSuchKey", "NotFound"})
PASSING = frozenset({408, 429})
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class RemoteStorage(ResultStore, Protocol):
    """Where large documents are put for the worker, and results are looked for."""

    def upload(self, name: str, data: bytes, digest: str) -> JsonObject:
        """Put it there unless it is; the job's source keys. Raises `Unreachable`."""


@dataclass(frozen=True, slots=True)
class Place:
    """One S3 bucket; `delivery` is how the worker calls it."""

    client: Any
    bucket: str
    delivery: Delivery

    def put(self, name: str, data: bytes, digest: str) -> JsonObject:
        """Upload unless it is there, and say how a job names it. Raises `Unreachable` or `Rejected`."""
        from boto3.exceptions import Boto3Error
        from boto3.s3.transfer import TransferConfig
        from botocore.exceptions import BotoCoreError, ClientError

        key = f"{UPLOADS}/{digest}/{_UNSAFE.sub('_', name)[-100:] or 'document'}"
        transfer = TransferConfig(multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES)
        try:
            if self._size(key) != len(data):
                self.client.upload_fileobj(io.BytesIO(data), self.bucket, key, Config=transfer)
        except (BotoCoreError, ClientError, Boto3Error) as error:
            raise self._failure(error) from error
        if self.delivery is Delivery.VOLUME:
            return {"volume_path": key}
        return {"s3_uri": f"s3://{self.bucket}/{key}"}

    def get(self, key: str) -> bytes | None:
        """The object, or None where there is none. Raises `Unreachable` or `Rejected`."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer = self.client.get_object(Bucket=self.bucket, Key=key)
            data: bytes = answer["Body"].read()
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ABSENT:
                return None
            raise self._failure(error) from error
        except (BotoCoreError, OSError) as error:
            raise self._failure(error) from error
        return data

    def _failure(self, error: Exception) -> Unreachable | Rejected:
        """A refusal that repeats itself, or trouble that may pass."""
        cause = error.__cause__ or error.__context__ or error
        answer = getattr(error, "response", None) or getattr(cause, "response", None) or {}
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        if 400 <= status < 500 and status not in PASSING:
            return Rejected(f"the {self.delivery} refused: {error}")
        return Unreachable(f"the {self.delivery} does not answer: {error}")

    def _size(self, key: str) -> int | None:
        from botocore.exceptions import ClientError

        try:
            size: int = self.client.head_object(Bucket=self.bucket, Key=key)["ContentLength"]
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ABSENT:
                return None
            raise
        return size


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the client may upload and look. The bucket comes first: the worker can read it from anywhere."""

    places: tuple[Place, ...]

    def upload(self, name: str, data: bytes, digest: str) -> JsonObject:
        """Put a document where the worker reads it; the job's source keys."""
        return self.places[0].put(name, data, digest)

    def fetch(self, delivery: Delivery, key: str) -> bytes | None:
        """What lies under `key`, or None."""
        for place in self.places:
            if place.delivery is delivery:
                return place.get(key)
        return None

    def find(self, content_key: str) -> bytes | None:
        """The result left under a content key, or None."""
        for place in self.places:
            data = place.get(f"{RESULTS}/{content_key}/result.json")
            if data is not None:
                return data
        return None


def open_storage(config: Config) -> Storage | None:
    """What is configured; None when nothing is. Raises `MissingExtra`."""
    places = []
    if config.bucket_name and config.bucket_endpoint_url:
        client = _client(
            config.bucket_endpoint_url,
            config.bucket_access_key_id,
            config.bucket_secret_access_key,
            config.bucket_region,
        )
        places.append(Place(client, config.bucket_name, Delivery.S3))
    if config.runpod_volume_id and config.runpod_volume_endpoint_url:
        client = _client(
            config.runpod_volume_endpoint_url,
            config.runpod_volume_access_key_id,
            config.runpod_volume_secret_access_key,
            config.runpod_volume_region,
        )
        places.append(Place(client, config.runpod_volume_id, Delivery.VOLUME))
    return Storage(tuple(places)) if places else None


def _client(address: str, key: str, secret: str, region: str) -> Any:
    try:
        import boto3
        import botocore.config
    except ImportError as error:
        raise MissingExtra("a bucket or volume is configured: pip install 'glmocr-runpod[s3]'") from error
    return boto3.client(
        "s3",
        endpoint_url=address,
        aws_access_key_id=key or None,
        aws_secret_access_key=secret or None,
        region_name=region,
        config=botocore.config.Config(
            signature_version="s3v4",
            s3={"addressing_style": "path"},
            # Stores other than AWS refuse the checksums that boto3 adds by default since 1.36.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            connect_timeout=10,
            read_timeout=120,
            # The pauses between repetitions are the flow's: see `schedule`.
            retries={"mode": "standard", "max_attempts": 1},
        ),
    )
