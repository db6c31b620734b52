"""The worker's models give the golden files, and read them back."""

import base64
import gzip
import hashlib

import pytest
from pydantic import BaseModel

from handler.identity import content_key
from handler.schema import Envelope, ErrorInfo, JobInput, JobOutput, Progress
from scripts import make_golden
from tests.contract.golden_files import golden, golden_text

FORMS: dict[str, type[BaseModel]] = {
    "inline": JobOutput,
    "gzip": Envelope,
    "volume": Envelope,
    "s3": Envelope,
    "progress": Progress,
}


@pytest.mark.parametrize("name", make_golden.golden())
def test_the_files_are_what_the_models_give(name: str) -> None:
    assert golden_text(name) == make_golden.text(make_golden.golden()[name])


@pytest.mark.parametrize(("name", "model"), FORMS.items())
def test_every_form_is_read_and_written_alike(name: str, model: type[BaseModel]) -> None:
    assert model.model_validate(golden(name)).model_dump(mode="json") == golden(name)


def test_the_error_is_a_json_string() -> None:
    assert ErrorInfo.model_validate_json(golden("error")).code == "password_required"


def test_content_keys() -> None:
    identity = golden("identity")
    for name, request in golden("request").items():
        job = JobInput.model_validate(request)
        assert content_key(identity["document_sha256"], job) == identity["content_keys"][name]


def test_the_packed_result_is_the_inline_one() -> None:
    packed = Envelope.model_validate(golden("gzip"))
    data = gzip.decompress(base64.b64decode(packed.data or ""))
    assert (len(data), hashlib.sha256(data).hexdigest()) == (packed.size, packed.sha256)
    assert JobOutput.model_validate_json(data) == JobOutput.model_validate(golden("inline"))
