import pytest

from handler.errors import InputError, NoSource, SeveralSources, UnknownKey
from handler.job_input import parse_input
from handler.schema import Format, Furniture, JobInput


def test_defaults() -> None:
    job = parse_input({"file_base64": "aGk="})
    assert job == JobInput(file_base64="aGk=")
    assert job.formats == (Format.MARKDOWN, Format.JSON)
    assert (job.dpi, job.furniture, job.checkpoint) == (200, Furniture.DROP, True)


def test_unknown_key_names_the_nearest() -> None:
    with pytest.raises(UnknownKey, match="did you mean file_base64") as caught:
        parse_input({"file_b64": "aGk="})
    assert caught.value.details == {"key": "file_b64", "nearest": "file_base64"}


def test_unknown_key_like_nothing_lists_what_is_known() -> None:
    with pytest.raises(UnknownKey, match="known keys: file_base64"):
        parse_input({"zzz": 1})


@pytest.mark.parametrize("value", [None, [], "x", 3])
def test_input_must_be_an_object(value: object) -> None:
    with pytest.raises(InputError, match="must be an object"):
        parse_input(value)


def test_exactly_one_source() -> None:
    with pytest.raises(NoSource):
        parse_input({"filename": "a.pdf"})
    with pytest.raises(SeveralSources, match="file_base64, file_url"):
        parse_input({"file_base64": "aGk=", "file_url": "https://example.org/a.pdf"})


def test_warmup_takes_no_document() -> None:
    assert parse_input({"warmup": True}).warmup
    with pytest.raises(InputError, match="take no document"):
        parse_input({"probe": True, "file_base64": "aGk="})


@pytest.mark.parametrize(
    ("key", "value"),
    [("dpi", 20), ("dpi", "many"), ("formats", ["docx"]), ("max_tokens", 0), ("furniture", "maybe"), ("pages", 3)],
)
def test_a_bad_value_is_named(key: str, value: object) -> None:
    with pytest.raises(InputError, match=key):
        parse_input({"file_base64": "aGk=", key: value})


@pytest.mark.parametrize("key", ["password", "file_base64", "file_url"])
def test_secrets_and_documents_are_not_echoed(key: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_input({"file_base64": "aGk=", key: ["s3cret"]})
    assert "s3cret" not in caught.value.message
