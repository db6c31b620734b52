"""Upload a model to a RunPod network volume through its S3 API: scripts/seed-volume NAME DIRECTORY

    scripts/fetch-model pp-doclayout-v3 --to models
    scripts/seed-volume pp-doclayout-v3 models --volume VOLUME_ID --endpoint-url ADDRESS --region DATACENTRE

DIRECTORY is what scripts/fetch-model filled. The volume's id is the bucket, the path under the mount is the key. Keys
come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: an S3 key of the account, not its API key. An interrupted upload
goes on where it stopped: parts that arrived are not sent again. A worker takes a model only when every file has the
manifest's hash, so half an upload is never loaded.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from handler.bucket import S3_CONFIG
from handler.errors import ModelError
from handler.models.manifest import MANIFEST_PATH, load_manifest
from handler.models.store import store_path, volume_models
from handler.models.verify import find_problems

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

MAX_PART = 500_000_000
"""Bytes: what RunPod's S3 API takes in one part."""
PART = 64 * 1024 * 1024
MAX_PARTS = 10_000


class UploadError(Exception):
    """What lies on the volume is not what was sent."""


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a file, numbered from 1."""

    number: int
    offset: int
    size: int


def parts_of(size: int, part_size: int) -> list[Part]:
    """The pieces of a file of `size` bytes. Raises `UploadError` where the API would not take them."""
    if part_size > MAX_PART or -(-size // part_size) > MAX_PARTS:
        raise UploadError(f"{size} bytes in parts of {part_size}: at most {MAX_PARTS} parts of {MAX_PART} bytes")
    starts = range(0, max(size, 1), part_size)
    return [Part(number, start, min(part_size, size - start)) for number, start in enumerate(starts, start=1)]


def client(endpoint_url: str, region: str) -> "S3Client":
    """An S3 client for the volume, with the keys of the environment."""
    return boto3.client("s3", endpoint_url=endpoint_url, region_name=region, config=S3_CONFIG)


class Volume:
    """A network volume behind its S3 API."""

    def __init__(self, s3: "S3Client", bucket: str, progress: Progress, part_size: int = PART) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._progress = progress
        self._part_size = part_size

    def put(self, path: Path, key: str) -> None:
        """Upload one file unless it is there already, and read its size back."""
        size = path.stat().st_size
        task = self._progress.add_task(path.name, total=size)
        if self._size(key) != size or not self._same(path, key):
            parts = parts_of(size, self._part_size)
            if len(parts) == 1:
                self._s3.put_object(Bucket=self._bucket, Key=key, Body=path.read_bytes())
            else:
                self._put_parts(path, key, parts, task)
            if not self._same(path, key):
                raise UploadError(f"{key} on the volume differs from {path}")
        self._progress.update(task, completed=size)

    def _put_parts(self, path: Path, key: str, parts: list[Part], task: TaskID) -> None:
        upload = self._unfinished(key) or self._s3.create_multipart_upload(Bucket=self._bucket, Key=key)["UploadId"]
        there = dict(self._arrived(key, upload))
        tags: list[CompletedPartTypeDef] = []
        with path.open("rb") as stream:
            for part in parts:
                stream.seek(part.offset)
                data = stream.read(part.size)
                tag = there.get(part.number)
                if tag != hashlib.md5(data, usedforsecurity=False).hexdigest():
                    tag = self._s3.upload_part(
                        Bucket=self._bucket, Key=key, UploadId=upload, PartNumber=part.number, Body=data
                    )["ETag"]
                tags.append({"ETag": f'"{tag.strip(chr(34))}"', "PartNumber": part.number})
                self._progress.advance(task, part.size)
        self._s3.complete_multipart_upload(
            Bucket=self._bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": tags}
        )

    def _unfinished(self, key: str) -> str | None:
        uploads = self._s3.list_multipart_uploads(Bucket=self._bucket, Prefix=key).get("Uploads", [])
        return next((upload["UploadId"] for upload in uploads if upload["Key"] == key), None)

    def _arrived(self, key: str, upload: str) -> Iterator[tuple[int, str]]:
        pages = self._s3.get_paginator("list_parts").paginate(Bucket=self._bucket, Key=key, UploadId=upload)
        for page in pages:
            for part in page.get("Parts", ()):
                yield part["PartNumber"], part["ETag"].strip('"')

    def _size(self, key: str) -> int | None:
        try:
            return self._s3.head_object(Bucket=self._bucket, Key=key)["ContentLength"]
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
                return None
            raise

    def _same(self, path: Path, key: str) -> bool:
        """Whether every byte on the volume is the file's: read back, because an ETag proves nothing everywhere."""
        digest = hashlib.sha256()
        for chunk in self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].iter_chunks(1024 * 1024):
            digest.update(chunk)
        with path.open("rb") as stream:
            return digest.digest() == hashlib.file_digest(stream, "sha256").digest()


def seed(volume: Volume, name: str, root: Path, manifest: Path = MANIFEST_PATH) -> None:
    """Upload the model under `root`. Raises `ModelError` if it is not complete here."""
    entry = load_manifest(manifest).model(name)
    directory = store_path(root, name, entry)
    if problems := find_problems(directory, entry):
        raise ModelError(f"{directory}: {'; '.join(problems)}")
    there = store_path(volume_models(Path()), name, entry)
    for file in entry.files:
        volume.put(directory / file.path, (there / file.path).as_posix())


def main() -> int:
    """Exit status: 0 when the volume holds the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the model's name in the manifest")
    parser.add_argument("directory", type=Path, help="what scripts/fetch-model filled")
    parser.add_argument("--volume", required=True, help="the network volume's id")
    parser.add_argument("--endpoint-url", required=True, help="S3 address of the volume's data centre")
    parser.add_argument("--region", required=True, help="the data centre's name, for example EU-RO-1")
    parser.add_argument("--manifest", type=Path, default=MANIFEST_PATH)
    parser.add_argument("--part-mb", type=int, default=PART // 2**20, help="size of a part (default: %(default)s)")
    arguments = parser.parse_args()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    try:
        with Progress(*columns) as progress:
            s3 = client(arguments.endpoint_url, arguments.region)
            volume = Volume(s3, arguments.volume, progress, arguments.part_mb * 2**20)
            seed(volume, arguments.name, arguments.directory, arguments.manifest)
    except (ModelError, UploadError, BotoCoreError, ClientError, OSError) as error:
        print(f"seed-volume: {error}; run it again to go on", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
