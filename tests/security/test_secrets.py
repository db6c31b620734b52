"""Secrets planted everywhere they can be given, and searched for in everything that leaves the worker."""

import io
import json
import logging
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from handler.documents.page import StagedDocument
from handler.documents.work import PageJob
from handler.logs import LogLevel, configure
from handler.schema import DocumentKind, JobInput
from handler.settings import Settings, secret_values
from tests.awkward.pdfs import drawn, lines, rc4_40
from tests.security.hostile import inline
from tests.support.reading_rig import reading_rig
from tests.support.sighted_engine import sighted_engine

ENVIRONMENT = {
    "ENGINE_API_KEY": "planted-engine-key-1",
    "BUCKET_ACCESS_KEY_ID": "planted-bucket-id-2",
    "BUCKET_SECRET_ACCESS_KEY": "planted-bucket-secret-3",
    "RUNPOD_API_KEY": "planted-runpod-key-4",
    "RUNPOD_AI_API_KEY": "planted-runpod-key-5",
    "AWS_SESSION_TOKEN": "planted-session-token-6",
    "HF_TOKEN": "planted-hub-token-7",
    "ENGINE_URL": "http://operator:planted-engine-password-8@127.0.0.1:9",
    "SGLANG_EXTRA_ARGS": "--api-key planted-extra-argument-9",
}
URL_SECRETS = ("planted-signature-10", "planted-user-11", "planted-token-12")
PASSWORDS = ("planted-password-13", "user")
PLANTED = tuple(re.findall(r"planted-[a-z-]+-\d+", " ".join([*ENVIRONMENT.values(), *URL_SECRETS, *PASSWORDS])))


@pytest.fixture
def bucket() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client = boto3.client(
        "s3",
        endpoint_url=f"http://{host}:{port}",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket="documents")
    yield f"http://{host}:{port}"
    server.stop()


def jobs() -> Iterator[dict[str, Any]]:
    """Good ones and bad ones; each carries secrets."""
    locked = rc4_40()
    page = drawn(lines)
    yield inline(locked, password=PASSWORDS[1])
    yield inline(locked, password=PASSWORDS[0])
    yield inline(page, password=PASSWORDS[0], transport="volume")
    yield inline(page, transport="s3")
    yield inline(page[:300], password=PASSWORDS[0])
    yield inline(page, password=[PASSWORDS[0]])
    query = f"?X-Amz-Signature={URL_SECRETS[0]}&X-Amz-Security-Token={URL_SECRETS[2]}"
    for address in (
        f"https://bucket.invalid/a.pdf{query}",
        f"http://127.0.0.1:9/a.pdf{query}",
        f"http://{URL_SECRETS[1]}@example.com/a.pdf",
        f"http://user:{URL_SECRETS[1]}@127.0.0.1/{query}",
        f"ftp://user:{URL_SECRETS[1]}@example.com/{query}",
    ):
        yield {"file_url": address, "password": PASSWORDS[0]}
    yield {"s3_uri": "s3://documents/absent.pdf"}
    yield {"probe": True}


def test_every_secret_is_searched_for() -> None:
    assert len(PLANTED) == 13


def searched(name: str, text: str, allowed: tuple[str, ...] = ()) -> list[str]:
    """Which planted secrets are in a sink."""
    return [f"{secret} in {name}" for secret in PLANTED if secret in text and secret not in allowed]


async def test_no_secret_in_any_sink(
    tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    volume = tmp_path / "volume"
    volume.mkdir()
    monkeypatch.setenv("RUNPOD_VOLUME_PATH", str(volume))
    monkeypatch.setenv("BUCKET_ENDPOINT_URL", bucket)
    monkeypatch.setenv("BUCKET_NAME", "documents")
    settings = Settings.from_env()
    stream = logging.StreamHandler(io.StringIO())
    found: list[str] = []
    with reading_rig(settings, sighted_engine()) as rig:
        configure(LogLevel.DEBUG, rig.lines, stream, secrets=secret_values())
        for job in jobs():
            answer = await rig.ask(job)
            # A presigned address names the key's id, which signs nothing by itself; that is how S3 works.
            presigned = ("planted-bucket-id-2",) if answer.get("delivery") == "s3" else ()
            found += searched("an answer", json.dumps(answer), presigned)
            logging.getLogger("handler.test").info("job %s", job)
            logging.getLogger("handler.test").error("failed", exc_info=RuntimeError(str(job)))
        found += searched("repr of the settings", repr(settings) + str(settings.public()), ("planted-bucket-id-2",))
    printed = capfd.readouterr()
    found += searched("the log", stream.stream.getvalue() + printed.out + printed.err)
    for path in volume.rglob("*"):
        if path.is_file():
            found += searched(str(path), path.read_bytes().decode("latin-1"))
    assert found == []


def test_values_do_not_show_their_secrets() -> None:
    job = JobInput(file_url=f"https://a.example/?sig={URL_SECRETS[0]}", password=PASSWORDS[0])
    document = StagedDocument(Path("a"), DocumentKind.PDF, "0", 1, password=PASSWORDS[0])
    page = PageJob(document, 1, 200, 0, 1, "handle")
    assert searched("repr", f"{job!r} {job} {document!r} {page!r} {[page]}") == []


async def test_nothing_of_a_job_stays_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with reading_rig(Settings(runpod_volume_path=tmp_path / "none"), sighted_engine()) as rig:
        for job in jobs():
            await rig.ask(job)
    assert list(tmp_path.rglob("glmocr-job-*")) == []
