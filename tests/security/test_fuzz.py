"""Whatever comes in, the parts that take it apart answer with an error of ours, and what goes out is JSON.

`pytest tests/security/test_fuzz.py --hypothesis-profile=fuzz` goes on for minutes.
"""

import contextlib
import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from glmocr_runpod.contract import ErrorInfo as ClientErrorInfo
from glmocr_runpod.effects import Response
from glmocr_runpod.errors import ClientError
from glmocr_runpod.protocol import failure_of, read_health, read_status, read_submission
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from handler.documents import images
from handler.documents.failures import RenderFailure
from handler.documents.tiff_frames import TiffFrames
from handler.errors import InputError, WorkerError
from handler.job_input import parse_input
from handler.results.encoding import clean
from handler.schema import DocumentKind, JobInput
from handler.sources.container import unpack
from handler.sources.fetched import Fetched
from handler.sources.sniffing import HEAD_BYTES, sniff
from tests.awkward.containers import packed
from tests.awkward.pdfs import lines_picture
from tests.awkward.pictures import frames, written
from tests.security.conftest import CORPUS

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=20,
)
KEYS = st.sampled_from(sorted(JobInput.model_fields)) | st.text(max_size=12)
DOCUMENT = b"%PDF-1.4\n" + bytes(range(256)) * 4
CONTAINERS = (packed(("a.pdf", DOCUMENT)), gzip.compress(DOCUMENT), packed(("a", DOCUMENT), ("b", DOCUMENT)))
SMALL = lines_picture((40, 40))
PICTURES = tuple((kind, written(SMALL, kind.value)) for kind in DocumentKind if kind is not DocumentKind.PDF)
TIFFS = (frames("TIFF", 2), frames("TIFF", 2, big_tiff=True))

few = settings(
    max_examples=120,
    deadline=None,
    database=DirectoryBasedExampleDatabase(CORPUS),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def fuzzed(test: Callable[..., None]) -> Callable[..., None]:
    """A few examples in the default suite; as many as the profile says with one."""
    chosen = settings.get_current_profile_name() == "fuzz"
    return test if chosen else few(test)


@st.composite
def mutated(draw: st.DrawFn, *seeds: bytes) -> bytes:
    """A seed with some bytes changed, a part cut out or doubled."""
    content = bytearray(draw(st.sampled_from(seeds)))
    for at, value in draw(st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=8)):
        content[at] = value
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    how = draw(st.sampled_from(("whole", "cut", "doubled", "short")))
    pieces = {"whole": content, "cut": content[:start] + content[end:], "short": content[:end]}
    return bytes(pieces.get(how, content[:end] + content[start:]))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


@fuzzed
@given(st.dictionaries(KEYS, ANY_JSON, max_size=6) | ANY_JSON)
def test_any_input_is_a_job_or_an_input_error(value: object) -> None:
    try:
        assert isinstance(parse_input(value), JobInput)
    except InputError as error:
        json.dumps(clean(error.info().model_dump())).encode()


@fuzzed
@given(mutated(*CONTAINERS))
def test_any_container_gives_one_file_or_an_error_of_ours(folder: Path, content: bytes) -> None:
    path = folder / "packed"
    path.write_bytes(content)
    try:
        unpacked = unpack(Fetched(path), folder / "unpacked", 100_000)
        sniff(unpacked.path.read_bytes()[:HEAD_BYTES])
    except WorkerError:
        pass
    assert {entry.name for entry in folder.iterdir()} <= {"packed", "unpacked", "picture"}


@fuzzed
@given(st.data())
def test_any_picture_is_read_or_fails_as_a_page(folder: Path, data: st.DataObject) -> None:
    kind, seed = data.draw(st.sampled_from(PICTURES))
    path = folder / "picture"
    path.write_bytes(data.draw(mutated(seed)))
    with contextlib.suppress(WorkerError, RenderFailure):
        images.open_picture(path, kind)
        pixels = images.read_picture(path, kind, 0, 1_000_000).pixels
        assert pixels.ndim == 3


@fuzzed
@given(mutated(*TIFFS))
def test_any_tiff_has_a_number_of_frames(folder: Path, content: bytes) -> None:
    path = folder / "picture"
    path.write_bytes(content or b"II")
    TiffFrames(path)


@fuzzed
@given(ANY_JSON)
def test_any_value_goes_out_as_json(value: object) -> None:
    text = json.dumps(clean(value), ensure_ascii=False, allow_nan=False)
    json.loads(text.encode())


@fuzzed
@given(st.integers(100, 599), st.binary(max_size=200) | ANY_JSON.map(lambda value: json.dumps(value).encode()))
def test_any_answer_of_the_platform_is_understood_or_a_client_error(status: int, body: bytes) -> None:
    response = Response(status, body)
    for read in (read_submission, read_status, read_health):
        with contextlib.suppress(ClientError):
            read(response)


@fuzzed
@given(ANY_JSON)
def test_any_error_of_a_job_is_an_error_the_client_knows(value: object) -> None:
    assert isinstance(failure_of(value), ClientErrorInfo)
