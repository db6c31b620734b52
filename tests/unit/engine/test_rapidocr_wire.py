import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from handler.engine.rapidocr_wire import BadRequest, ChatRequest, check_context, cut_to_tokens, image_tokens


def request(url: str | None = None, **fields: object) -> ChatRequest:
    parts: list[dict[str, object]] = [{"type": "text", "text": "Text Recognition:"}]
    if url is not None:
        parts.insert(0, {"type": "image_url", "image_url": {"url": url}})
    return ChatRequest.model_validate({"messages": [{"role": "user", "content": parts}], **fields})


def test_the_picture_comes_out_of_the_data_url() -> None:
    asked = request("data:image/png;base64," + base64.b64encode(b"bytes").decode())
    assert asked.picture() == b"bytes"
    assert asked.prompt == "Text Recognition:"


@pytest.mark.parametrize(
    "url", ["file:///etc/hostname", "/etc/hostname", "http://127.0.0.1/x.png", "data:text/plain,x"]
)
def test_only_pictures_in_data_urls_are_read(url: str) -> None:
    with pytest.raises(BadRequest, match="only data:image"):
        request(url).picture()


def test_exactly_one_picture_is_read() -> None:
    with pytest.raises(BadRequest, match="exactly one image"):
        request().picture()


def test_base64_is_checked() -> None:
    with pytest.raises(BadRequest, match="Non-base64"):
        request("data:image/png;base64,!!!").picture()


def test_a_budget_below_nothing_is_refused_and_the_newer_name_wins() -> None:
    with pytest.raises(BadRequest, match="at least 0"):
        request(max_tokens=-3).budget()
    assert request(max_tokens=5, max_completion_tokens=7).budget() == 7
    assert request().budget() is None


def test_messages_are_needed() -> None:
    with pytest.raises(ValidationError):
        ChatRequest.model_validate({"messages": []})


def test_what_exceeds_the_context_is_refused() -> None:
    check_context(100, 900, 1000)
    with pytest.raises(BadRequest, match="total of 1001 tokens"):
        check_context(100, 901, 1000)
    with pytest.raises(BadRequest, match="longer than"):
        check_context(1000, None, 1000)


def test_image_tokens_are_squares_of_28_pixels() -> None:
    assert image_tokens(280, 280) == 100
    assert image_tokens(1, 1) == 1


@given(st.text(), st.integers(0, 50))
def test_a_cut_answer_is_the_beginning_of_the_whole_one(text: str, limit: int) -> None:
    kept, tokens, cut = cut_to_tokens(text, limit)
    assert text.startswith(kept)
    assert cut or kept == text
    assert tokens <= limit


@given(st.text())
def test_without_a_limit_nothing_is_cut(text: str) -> None:
    assert cut_to_tokens(text, None)[0] == text
