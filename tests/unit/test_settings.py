import pytest

from handler.engine.api import EngineName
from handler.errors import SettingsError
from handler.layout.names import LayoutName
from handler.settings import Settings, secret_from


def test_every_bad_value_is_named_with_what_it_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_PORT", "http")
    monkeypatch.setenv("GLMOCR_ENGINE", "vllm")
    with pytest.raises(SettingsError) as caught:
        Settings.from_env()
    assert "SGLANG_PORT='http'" in caught.value.message
    assert "'sglang', 'rapidocr', 'transformers' or 'external'" in caught.value.message
    assert "\n" not in caught.value.message


def test_an_empty_value_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCR_MAX_TOKENS", "")
    assert Settings.from_env().ocr_max_tokens == 32768


@pytest.mark.parametrize(("value", "expected"), [("on", True), ("off", False)])
def test_switches_read_on_and_off(monkeypatch: pytest.MonkeyPatch, value: str, expected: bool) -> None:
    monkeypatch.setenv("BOOT_GOLDEN_PAGE", value)
    assert Settings.from_env().boot_golden_page is expected


@pytest.mark.parametrize("value", ["localhost:8000", "host", "ftp://host", "http://", "http://[::1"])
def test_an_address_that_is_none_is_refused_before_anyone_waits_for_it(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("ENGINE_URL", value)
    with pytest.raises(SettingsError, match="ENGINE_URL="):
        Settings.from_env()


def test_a_refused_address_is_shown_without_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGINE_URL", "ftp://user:hunter2@host")
    with pytest.raises(SettingsError) as refusal:
        Settings.from_env()
    assert "hunter2" not in refusal.value.message


def test_extra_arguments_with_an_open_quote_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SGLANG_EXTRA_ARGS", "--json-model-override-args '{")
    with pytest.raises(SettingsError, match=r"SGLANG_EXTRA_ARGS=.*No closing quotation"):
        Settings.from_env()


def test_layout_follows_the_engine() -> None:
    assert Settings(glmocr_engine=EngineName.RAPIDOCR).layout is LayoutName.CDLA
    assert Settings(glmocr_engine=EngineName.SGLANG).layout is LayoutName.PP_DOCLAYOUT_V3
    with pytest.raises(SettingsError, match="GLMOCR_LAYOUT"):
        _ = Settings(glmocr_engine=EngineName.EXTERNAL).layout


def test_secrets_are_not_public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUCKET_SECRET_ACCESS_KEY", "hunter2")
    monkeypatch.setenv("ENGINE_API_KEY", "hunter3")
    settings = Settings.from_env()
    assert "hunter" not in repr(settings)
    assert "hunter" not in str(settings.public())
    assert settings.public()["GLMOCR_ENGINE"] == "sglang"


def test_the_key_of_a_command_line_comes_from_the_variable_it_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_KEY", "secret")
    assert secret_from("THE_KEY") == "secret"
    monkeypatch.setenv("THE_KEY", "")
    with pytest.raises(SettingsError, match="THE_KEY is not set or empty"):
        secret_from("THE_KEY")
