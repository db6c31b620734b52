"""The client's own model reads and writes the golden files exactly, and tolerates what newer workers add."""

import json
from typing import Any

import msgspec
import pytest
from glmocr_runpod import contract
from glmocr_runpod.contract import DocumentStatus, Envelope, JobOutput, Options, Progress, RegionStatus
from glmocr_runpod.delivery import receive
from glmocr_runpod.identity import content_key
from glmocr_runpod.protocol import failure_of

from tests.contract.golden_files import golden

FORMS: dict[str, type[msgspec.Struct]] = {
    "inline": JobOutput,
    "gzip": Envelope,
    "volume": Envelope,
    "s3": Envelope,
    "progress": Progress,
}


@pytest.mark.parametrize(("name", "model"), FORMS.items())
def test_every_form_is_read_and_written_alike(name: str, model: type[msgspec.Struct]) -> None:
    assert json.loads(msgspec.json.encode(msgspec.convert(golden(name), model))) == golden(name)


def test_the_error() -> None:
    error = failure_of(golden("error"))
    assert (error.code, error.retryable, error.details) == ("password_required", False, {"filename": "contract.pdf"})


@pytest.mark.parametrize("name", golden("request"))
def test_content_keys_and_requests(name: str) -> None:
    request, identity = golden("request")[name], golden("identity")
    options = msgspec.convert({k: v for k, v in request.items() if k in Options.__struct_fields__}, Options)
    assert content_key(identity["document_sha256"], options) == identity["content_keys"][name]
    defaults = golden("request")["defaults"]
    assert all(request[key] == value for key, value in options.wire().items())
    assert {key for key in Options.__struct_fields__ if request[key] != defaults[key]} == options.wire().keys()


def test_the_packed_result_is_the_inline_one() -> None:
    flow = receive(golden("gzip"), None)
    with pytest.raises(StopIteration) as end:
        next(flow)
    assert msgspec.json.decode(end.value.value) == golden("inline")


@pytest.mark.parametrize(("name", "model"), FORMS.items())
def test_unknown_keys_are_tolerated_everywhere(name: str, model: type[msgspec.Struct]) -> None:
    assert msgspec.convert(_with_news(golden(name)), model) == msgspec.convert(golden(name), model)


def test_unknown_words_are_tolerated() -> None:
    wire = golden("inline")
    wire["status"] = "postponed"
    wire["pages"][0]["regions"][0] |= {"status": "guessed", "label": "hologram", "reason": "sunspots"}
    output = msgspec.convert(wire, JobOutput)
    region = output.pages[0].regions[0]
    assert (output.status, region.status) == (DocumentStatus.UNKNOWN, RegionStatus.UNKNOWN)
    assert (region.label, region.reason) == ("hologram", "sunspots")


def test_the_versions_agree() -> None:
    assert golden("inline")["schema_version"] == contract.CONTRACT_VERSION


def _with_news(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: inner if key in ("debug", "details") else _with_news(inner) for key, inner in value.items()}
        return kept | {"news_of_version_2": {"nested": [1]}}
    if isinstance(value, list):
        return [_with_news(inner) for inner in value]
    return value
