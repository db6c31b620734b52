"""Uploads to a bucket and to the volume, and results fetched from them, over a real S3 server."""

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import msgspec
import pytest
from glmocr_runpod import Client, Config
from glmocr_runpod.contract import Delivery
from glmocr_runpod.errors import Lost, Rejected, Undelivered, Unreachable
from glmocr_runpod.kit import Kit
from glmocr_runpod.storage import open_storage
from moto.server import ThreadedMotoServer

from emulator.jobs import Job
from tests.client.rig import Rig, result_for

NOISE = b"\x89PNG" + b"".join(hashlib.sha256(bytes([i, j])).digest() for i in range(100) for j in range(100))


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(port=0)
    server.start()
    _, port = server.get_host_and_port()
    yield f"http://127.0.0.1:{port}"
    server.stop()


@pytest.fixture
def bucket(s3: str) -> Iterator[Any]:
    client = boto3.client(
        "s3", endpoint_url=s3, aws_access_key_id="k", aws_secret_access_key="s", region_name="us-east-1"
    )
    for name in ("papers", "volume-1"):
        client.create_bucket(Bucket=name)
    yield client
    for name in ("papers", "volume-1"):
        for item in client.list_objects_v2(Bucket=name).get("Contents", []):
            client.delete_object(Bucket=name, Key=item["Key"])
        client.delete_bucket(Bucket=name)


def with_bucket(rig: Rig, s3: str) -> Config:
    return _with(
        rig, bucket_endpoint_url=s3, bucket_name="papers", bucket_access_key_id="k", bucket_secret_access_key="s",
        bucket_region="us-east-1",
    )  # fmt: skip


def with_volume(rig: Rig, s3: str) -> Config:
    return _with(
        rig, runpod_volume_endpoint_url=s3, runpod_volume_id="volume-1", runpod_volume_access_key_id="k",
        runpod_volume_secret_access_key="s", runpod_volume_region="us-east-1",
    )  # fmt: skip


def _with(rig: Rig, **more: str) -> Config:
    return msgspec.structs.replace(rig.config, **more)


class Worker:
    """Reads what the job names from S3, and answers with an envelope."""

    def __init__(self, bucket: Any, delivery: str | None = None, *, sign: bool = False, spoil: bool = False) -> None:
        self.bucket, self.delivery, self.sign, self.spoil = bucket, delivery, sign, spoil
        self.read: list[bytes] = []

    async def __call__(self, job: Job) -> dict[str, Any]:
        data = self._document(job.input)
        self.read.append(data)
        inline = {k: v for k, v in job.input.items() if k not in ("s3_uri", "volume_path")}
        output = result_for({**inline, "file_base64": base64.b64encode(data).decode()})
        return {"output": self._envelope(output) if self.delivery else output}

    def _document(self, job_input: dict[str, Any]) -> bytes:
        if "volume_path" in job_input:
            return self._get("volume-1", job_input["volume_path"])
        if "s3_uri" in job_input:
            name, _, key = job_input["s3_uri"].removeprefix("s3://").partition("/")
            return self._get(name, key)
        return b"%PDF-1.7"

    def _get(self, name: str, key: str) -> bytes:
        data: bytes = self.bucket.get_object(Bucket=name, Key=key)["Body"].read()
        return data

    def _envelope(self, output: dict[str, Any]) -> dict[str, Any]:
        data = json.dumps(output).encode()
        key = f"glmocr/results/{output['document']['content_key']}/result.json"
        where = {"Bucket": "volume-1" if self.delivery == "volume" else "papers", "Key": key}
        self.bucket.put_object(Body=data + b" " if self.spoil else data, **where)
        url = self.bucket.generate_presigned_url("get_object", Params=where) if self.sign else None
        return envelope(output, data, delivery=self.delivery, key=key, url=url)


def envelope(
    output: dict[str, Any], data: bytes, *, delivery: str = "s3", key: str | None = None, url: str | None = None
) -> dict[str, Any]:
    return {
        "schema_version": "1",
        "delivery": delivery,
        "key": key,
        "url": url,
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "status": output["status"],
        "counts": output["counts"],
    }


@pytest.mark.parametrize(("configure", "source"), [(with_bucket, "s3_uri"), (with_volume, "volume_path")])
def test_large_documents_are_uploaded_once(rig: Rig, s3: str, bucket: Any, configure: Any, source: str) -> None:
    worker = Worker(bucket)
    kit = Kit(uploads=True, body_limit=200_000)
    with Client(config=configure(rig, s3), kit=kit) as client, rig.worker(worker):
        document = client.parse(NOISE, name="größe 1.png")
    assert worker.read == [NOISE]
    (job,) = rig.jobs()
    assert not job.input[source].removeprefix("s3://papers/").startswith("glmocr/")
    assert [step["step"] for step in document.transport] == ["gzip", "upload"]


@pytest.mark.parametrize("sign", [True, False])
def test_a_result_in_the_bucket(rig: Rig, s3: str, bucket: Any, sign: bool) -> None:
    with Client(config=with_bucket(rig, s3)) as client, rig.worker(Worker(bucket, "s3", sign=sign)):
        assert client.parse(b"%PDF-1.7").output.document is not None


def test_a_signed_result_needs_no_storage(rig: Rig, s3: str, bucket: Any) -> None:
    with Client(config=rig.config) as client, rig.worker(Worker(bucket, "s3", sign=True)):
        assert client.parse(b"%PDF-1.7").output.document is not None


def test_a_result_on_the_volume(rig: Rig, s3: str, bucket: Any) -> None:
    with rig.worker(Worker(bucket, "volume")):
        with Client(config=rig.config) as client, pytest.raises(Undelivered, match="configure the storage"):
            client.parse(b"%PDF-1.7")
        with Client(config=with_volume(rig, s3)) as client:
            assert client.parse(b"%PDF-1.7").output.document is not None
    assert len(rig.jobs()) == 1


def test_a_result_that_does_not_match_its_digest(rig: Rig, s3: str, bucket: Any) -> None:
    with (
        Client(config=with_bucket(rig, s3)) as client,
        rig.worker(Worker(bucket, "s3", spoil=True)),
        pytest.raises(Undelivered, match="does not match its digest"),
    ):
        client.parse(b"%PDF-1.7")


def test_results_are_found_by_content_key(rig: Rig, s3: str, bucket: Any) -> None:
    storage = open_storage(with_volume(rig, s3))
    assert storage is not None
    assert storage.find("c" * 64) is None
    bucket.put_object(Bucket="volume-1", Key=f"glmocr/results/{'c' * 64}/result.json", Body=b"{}")
    assert storage.find("c" * 64) == b"{}"
    assert storage.fetch(Delivery.S3, "x") is None


def test_a_lost_job_whose_result_lies_on_the_volume(rig: Rig, s3: str, bucket: Any) -> None:
    with Client(config=rig.config) as client:
        client.submit(b"%PDF-1.7", name="a.pdf")
        (job,) = rig.jobs()
        rig.do(lambda: rig.emulator.queue.shorten(job, -1))
        with pytest.raises(Lost, match="No storage is configured"):
            client.parse(b"%PDF-1.7", name="a.pdf")
    output = result_for(job.input)
    key = f"glmocr/results/{output['document']['content_key']}/result.json"
    bucket.put_object(Bucket="volume-1", Key=key, Body=json.dumps(output).encode())
    with Client(config=with_volume(rig, s3)) as client:
        assert client.parse(b"%PDF-1.7", name="a.pdf").output.document is not None
    assert len(rig.jobs()) == 1


def test_figures_left_in_storage_come_along(rig: Rig, s3: str, bucket: Any, tmp_path: Path) -> None:
    async def answer(job: Job) -> dict[str, Any]:
        output = result_for(job.input)
        figure = {"name": "1.jpg", "media_type": "image/jpeg", "size": 4, "data": None, "url": None}
        digest = hashlib.sha256(b"jpeg").hexdigest()
        output["artifacts"] = [figure | {"sha256": digest, "key": key} for key in ("glmocr/1", "glmocr/none")]
        return {"output": output}

    bucket.put_object(Bucket="volume-1", Key="glmocr/1", Body=b"jpeg")
    with Client(config=with_volume(rig, s3)) as client, rig.worker(answer):
        document = client.parse(b"%PDF-1.7", name="a.pdf")
    document.save(tmp_path / "out")
    assert (tmp_path / "out" / "a.figures" / "1.jpg").read_bytes() == b"jpeg"
    assert [artifact.key for artifact in document.absent] == ["glmocr/none"]


def test_a_large_result_comes_from_its_address(rig: Rig, s3: str, bucket: Any) -> None:
    async def answer(job: Job) -> dict[str, Any]:
        output = result_for(job.input)
        output["debug"] = {"log": ["x" * 70_000_000]}
        data = json.dumps(output).encode()
        bucket.put_object(Bucket="papers", Key="big", Body=data)
        url = bucket.generate_presigned_url("get_object", Params={"Bucket": "papers", "Key": "big"})
        return {"output": envelope(output, data, url=url, key="big")}

    with Client(config=rig.config) as client, rig.worker(answer):
        assert client.parse(b"%PDF-1.7", name="a.pdf").pages


def test_a_result_whose_address_does_not_answer_comes_by_its_key(rig: Rig, s3: str, bucket: Any) -> None:
    async def answer(job: Job) -> dict[str, Any]:
        output = result_for(job.input)
        data = json.dumps(output).encode()
        bucket.put_object(Bucket="papers", Key="there", Body=data)
        return {"output": envelope(output, data, url="http://127.0.0.1:9/there", key="there")}

    with Client(config=with_bucket(rig, s3)) as client, rig.worker(answer):
        assert client.parse(b"%PDF-1.7", name="a.pdf").pages


def test_a_refusal_of_the_storage_is_not_repeated(rig: Rig, s3: str, bucket: Any) -> None:
    storage = open_storage(msgspec.structs.replace(with_bucket(rig, s3), bucket_name="nobodys"))
    assert storage is not None
    with pytest.raises(Rejected, match="NoSuchBucket"):
        storage.find("c" * 64)
    with pytest.raises(Rejected):
        storage.upload("n", b"x", "d")


def test_storage_that_is_down_is_unreachable(rig: Rig) -> None:
    storage = open_storage(with_bucket(rig, "http://127.0.0.1:9"))
    assert storage is not None
    with pytest.raises(Unreachable):
        storage.find("c" * 64)
    with pytest.raises(Unreachable):
        storage.upload("n", b"x", "d")
