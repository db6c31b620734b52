import base64
import gzip
import hashlib
import json
import random
from pathlib import Path

import pytest

from handler.errors import InputError, ResultTooLarge, StorageUnavailable
from handler.page_outcome import Figure
from handler.results.delivery import Deliverer
from handler.results.encoding import wire_size
from handler.results.storage import Stored, VolumeStorage
from handler.schema import (
    Delivery,
    DocumentInfo,
    DocumentKind,
    DocumentStatus,
    Envelope,
    JobOutput,
    ProducedBy,
    Reason,
    Transport,
)

KEY = "ab" * 32


def output(markdown: str) -> JobOutput:
    info = DocumentInfo(sha256="0" * 64, size=1, kind=DocumentKind.PDF, page_count=1, pages_read=1, content_key=KEY)
    made_by = ProducedBy(worker="0", engine="fake", layout="whole_page")
    return JobOutput(status=DocumentStatus.COMPLETE, document=info, markdown=markdown, produced_by=made_by)


def noise(size: int) -> str:
    return random.Random(1).randbytes(size // 2).hex()


class Full:
    """A storage without room."""

    def __init__(self, delivery: Delivery = Delivery.VOLUME) -> None:
        self.delivery = delivery

    async def put(self, name: str, data: bytes, media_type: str) -> Stored:
        raise StorageUnavailable("the volume refused the result: No space left on device")


class Shelf:
    """A bucket that remembers what was put there."""

    delivery = Delivery.S3

    def __init__(self) -> None:
        self.puts: list[tuple[str, int]] = []

    async def put(self, name: str, data: bytes, media_type: str) -> Stored:
        self.puts.append((name, len(data)))
        return Stored(f"glmocr/results/{name}", "https://signed")


@pytest.fixture
def volume(tmp_path: Path) -> VolumeStorage:
    return VolumeStorage(tmp_path / "glmocr" / "results", tmp_path)


async def test_a_small_result_travels_as_it_is() -> None:
    value = await Deliverer(None, None).deliver(output("hello"), (), Transport.AUTO)
    assert JobOutput.model_validate(value).markdown == "hello"


async def test_a_larger_one_is_zipped() -> None:
    deliverer = Deliverer(None, None, inline_limit=50_000)
    value = await deliverer.deliver(output("hello " * 20_000), (), Transport.AUTO)
    envelope = Envelope.model_validate(value)
    data = gzip.decompress(base64.b64decode(envelope.data or ""))
    assert envelope.delivery is Delivery.GZIP
    assert (len(data), hashlib.sha256(data).hexdigest()) == (envelope.size, envelope.sha256)
    assert JobOutput.model_validate_json(data).markdown == "hello " * 20_000
    assert wire_size(value) < 50_000


async def test_nul_travels_zipped_however_small() -> None:
    value = await Deliverer(None, None).deliver(output("a\0b"), (), Transport.AUTO)
    envelope = Envelope.model_validate(value)
    assert b"\\u0000" not in json.dumps(value).encode()
    assert json.loads(gzip.decompress(base64.b64decode(envelope.data or "")))["markdown"] == "a\0b"


async def test_twelve_megabytes_that_do_not_shrink_go_to_the_volume(volume: VolumeStorage, tmp_path: Path) -> None:
    value = await Deliverer(volume, None, inline_limit=6_000_000).deliver(output(noise(12_000_000)), (), Transport.AUTO)
    envelope = Envelope.model_validate(value)
    assert envelope.delivery is Delivery.VOLUME
    assert envelope.key == f"glmocr/results/{KEY}/result.json"
    data = (tmp_path / envelope.key).read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (envelope.size, envelope.sha256)
    assert sorted(p.name for p in (tmp_path / "glmocr/results" / KEY).iterdir()) == ["result.json"]


async def test_where_the_bucket_refuses_the_volume_takes_it(volume: VolumeStorage) -> None:
    deliverer = Deliverer(volume, Full(Delivery.S3), inline_limit=10_000)
    value = await deliverer.deliver(output(noise(100_000)), (), Transport.AUTO)
    assert value["delivery"] == Delivery.VOLUME
    with pytest.raises(StorageUnavailable):
        await deliverer.deliver(output(noise(100_000)), (), Transport.S3)


async def test_what_fits_nowhere_is_said() -> None:
    with pytest.raises(ResultTooLarge) as caught:
        await Deliverer(None, None, inline_limit=10_000).deliver(output(noise(100_000)), (), Transport.AUTO)
    assert caught.value.details["limit"] == 10_000


async def test_inline_means_inline(volume: VolumeStorage) -> None:
    with pytest.raises(ResultTooLarge):
        await Deliverer(volume, None, inline_limit=10_000).deliver(output(noise(100_000)), (), Transport.INLINE)


async def test_every_result_is_left_on_the_volume(volume: VolumeStorage, tmp_path: Path) -> None:
    value = await Deliverer(volume, None).deliver(output("hello"), (), Transport.AUTO)
    assert json.loads((tmp_path / f"glmocr/results/{KEY}/result.json").read_text()) == value


async def test_a_full_volume_costs_nothing_that_travels_inline() -> None:
    value = await Deliverer(Full(), None).deliver(output("hello"), (), Transport.AUTO)
    assert value["markdown"] == "hello"
    with pytest.raises(StorageUnavailable):
        await Deliverer(Full(), None).deliver(output("hello"), (), Transport.VOLUME)


def test_a_transport_that_is_not_set_up_is_refused_before_the_work() -> None:
    with pytest.raises(InputError, match="no network volume"):
        Deliverer(None, None).refuse_impossible(Transport.VOLUME)
    with pytest.raises(InputError, match="BUCKET_ENDPOINT_URL"):
        Deliverer(None, None).refuse_impossible(Transport.S3)


async def test_a_copy_stays_in_the_bucket_where_there_is_no_volume(volume: VolumeStorage) -> None:
    bucket = Shelf()
    value = await Deliverer(None, bucket).deliver(output("hello"), (), Transport.AUTO)
    assert value["markdown"] == "hello"
    assert [name for name, _ in bucket.puts] == [f"{KEY}/result.json"]
    value = await Deliverer(None, bucket).deliver(output("hello"), (), Transport.S3)
    assert (value["url"], len(bucket.puts)) == ("https://signed", 2)
    await Deliverer(volume, bucket).deliver(output("hello"), (), Transport.AUTO)
    assert len(bucket.puts) == 2


async def test_a_copy_that_cannot_be_left_delays_nothing_and_a_failure_leaves_none() -> None:
    value = await Deliverer(None, Full()).deliver(output("hello"), (), Transport.AUTO)
    assert value["markdown"] == "hello"
    bucket = Shelf()
    failed = output("").model_copy(update={"status": DocumentStatus.FAILED})
    await Deliverer(None, bucket).deliver(failed, (), Transport.AUTO)
    assert bucket.puts == []


async def test_figures_travel_inline_while_they_are_few(volume: VolumeStorage, tmp_path: Path) -> None:
    few = (Figure("figures/page-0001-figure-000.jpg", 1, 0, b"jpeg"),)
    value = await Deliverer(volume, None).deliver(output("x"), few, Transport.AUTO)
    [artifact] = JobOutput.model_validate(value).artifacts
    assert base64.b64decode(artifact.data or "") == b"jpeg"
    many = (Figure("figures/page-0001-figure-000.jpg", 1, 0, b"j" * 4_000_000),)
    value = await Deliverer(volume, None).deliver(output("x"), many, Transport.AUTO)
    [artifact] = JobOutput.model_validate(value).artifacts
    assert artifact.data is None
    assert (tmp_path / (artifact.key or "")).stat().st_size == 4_000_000


async def test_figures_that_fit_nowhere_cost_themselves_and_not_the_text() -> None:
    figures = tuple(Figure(f"figures/{n}.jpg", 1, n, b"j" * size) for n, size in enumerate((4, 4_000_000, 5)))
    value = await Deliverer(None, None).deliver(output("the text"), figures, Transport.AUTO)
    result = JobOutput.model_validate(value)
    assert "the text" in (result.markdown or "")
    assert [artifact.data is None for artifact in result.artifacts] == [False, True, False]
    assert result.degraded.count == 1
    [item] = result.degraded.items
    assert (item.region, item.reason) == (1, Reason.FIGURE_NOT_DELIVERED)
