import base64
import gzip
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.results.encoding import encode, wire_size
from handler.schema import DocumentStatus, JobOutput, ProducedBy

MADE_BY = ProducedBy(worker="0", engine="fake", layout="whole_page")


def output(**fields: object) -> JobOutput:
    return JobOutput(status=DocumentStatus.COMPLETE, produced_by=MADE_BY).model_copy(update=fields)


def test_a_lone_surrogate_becomes_a_replacement_character_and_the_rest_stays() -> None:
    encoded = encode(output(markdown="a\ud800b \N{GRINNING FACE} \u0000"))
    assert encoded.value["markdown"] == "a\ufffdb \N{GRINNING FACE} \u0000"
    assert json.loads(encoded.data) == encoded.value
    assert encoded.has_nul


@pytest.mark.parametrize("markdown", ["text", "a lone surrogate \ud800"])
def test_nan_and_infinity_become_null(markdown: str) -> None:
    encoded = encode(output(debug={"a": float("nan"), "b": [float("inf"), 1.5]}, markdown=markdown))
    assert encoded.value["debug"] == {"a": None, "b": [None, 1.5]}


def test_zipped_bytes_are_the_hashed_ones_and_always_the_same() -> None:
    encoded = encode(output(markdown="x" * 10_000))
    assert gzip.decompress(base64.b64decode(encoded.zipped())) == encoded.data
    assert hashlib.sha256(encoded.data).hexdigest() == encoded.sha256
    assert encoded.zipped() == encode(output(markdown="x" * 10_000)).zipped()


@given(st.text(st.characters(), max_size=200))
def test_whatever_was_read_can_be_posted(text: str) -> None:
    encoded = encode(output(markdown=text))
    posted = json.dumps({"output": encoded.value}, ensure_ascii=False, allow_nan=False).encode()
    assert len(posted) == wire_size(encoded.value)
    assert len(str(encoded.value["markdown"])) == len(text)
