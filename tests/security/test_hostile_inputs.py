"""Every hostile input is answered with the code it deserves, by a worker that lives on.

One real worker without a GPU takes them all, one after another; after each it still answers, and after all of them it
has not grown.
"""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import psutil
import pytest
from moto.server import ThreadedMotoServer

from handler.settings import Settings
from tests.awkward.case import found
from tests.security.hostile import SECRET_FILE, Attack, attacks
from tests.support.reading_rig import Rig, reading_rig
from tests.support.sighted_engine import sighted_engine

GROWTH_LIMIT = 100 * 1024 * 1024


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"aws_access_key_id": "id", "aws_secret_access_key": "planted-secret-key", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys).create_bucket(Bucket="documents")
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, endpoint: str) -> Settings:
    volume = tmp_path_factory.mktemp("mounted") / "volume"
    volume.mkdir()
    return Settings.model_validate(
        {
            "runpod_volume_path": volume,
            "bucket_endpoint_url": endpoint,
            "bucket_name": "documents",
            "bucket_access_key_id": "id",
            "bucket_secret_access_key": "planted-secret-key",
            "max_document_bytes": 8 * 1024 * 1024,
            "max_pages": 500,
            "render_timeout_s": 10,
            "render_memory_mb": 1024,
        }
    )


@pytest.fixture(scope="module")
def rig(settings: Settings) -> Iterator[Rig]:
    with reading_rig(settings, sighted_engine()) as ready:
        yield ready


async def alive(rig: Rig) -> bool:
    return (await rig.ask({"probe": True}))["status"] == "complete"


def answered(attack: Attack, answer: dict[str, Any]) -> bool:
    actual = found(answer)
    if isinstance(actual, str) or isinstance(attack.expected, str):
        return actual == attack.expected
    return tuple(page.split("+")[0] for page in actual) == attack.expected


@pytest.mark.timeout(600)
async def test_all_are_refused_with_their_code_and_the_worker_lives_on(rig: Rig, settings: Settings) -> None:
    await rig.ask({"probe": True})
    before = psutil.Process().memory_info().rss
    wrong, count = [], 0
    for attack in attacks(settings.runpod_volume_path):
        answer = await rig.ask(attack.job)
        count += 1
        if not answered(attack, answer):
            wrong.append(f"{attack.name}: {found(answer)}, expected {attack.expected}")
        shown = json.dumps(answer)
        assert SECRET_FILE not in shown
        assert "planted-secret-key" not in shown
        assert await alive(rig), attack.name
    assert not wrong, "\n".join(wrong)
    assert count >= 120
    assert psutil.Process().memory_info().rss - before < GROWTH_LIMIT
    assert len(rig.pool._buffers) == 0, "every page's memory was given back"
