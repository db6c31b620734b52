import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.engine.api import EngineName
from handler.engine.commands import Command, command_for
from handler.engine.launch import EngineBoot, start_engine
from handler.engine.server import EngineServer, EngineStartError
from handler.errors import GateError, SettingsError
from handler.settings import Settings
from tests.unit.engine.conftest import SAMPLES, small_engine_argv


def boot_of(settings: Settings, command: Command) -> EngineBoot:
    return EngineBoot(settings, command, url="", key="key")


def small(*flags: str, step_down: "Callable[[], Command] | None" = None) -> Command:
    return Command(lambda port: small_engine_argv(port, *flags), profile="small", step_down=step_down)


@pytest.fixture
def settings() -> Settings:
    return Settings(glmocr_engine=EngineName.SGLANG, engine_start_timeout_s=20)


def test_it_returns_at_once_and_the_engine_answers_when_waited_for(settings: Settings) -> None:
    with boot_of(settings, small("--ready-after", "0.2", "--samples", str(SAMPLES))) as boot:
        engine = boot.wait_ready()
        assert engine.facts.version == "0.5.23"
        assert engine.alive()
        assert boot.described()["profile"] == "small"
        assert boot.last_words()["exit_code"] is None
    assert not engine.alive()
    assert boot.last_words()["exit_code"] == 0


def test_out_of_memory_is_answered_by_one_smaller_try(settings: Settings) -> None:
    smaller = small("--say", "now it fits")
    first = small("--say", "CUDA out of memory", "--exit-at-start", "1", step_down=lambda: smaller)
    with boot_of(settings, first) as boot:
        assert boot.wait_ready().alive()
        assert boot.server is not None
        assert "now it fits" in boot.server.tail()


def test_there_is_no_second_smaller_try(settings: Settings) -> None:
    def again() -> Command:
        return small("--say", "CUDA out of memory", "--exit-at-start", "1", step_down=again)

    with boot_of(settings, again()) as boot, pytest.raises(EngineStartError, match="out of memory"):
        boot.wait_ready()


def test_other_deaths_are_not_tried_again(settings: Settings) -> None:
    def never() -> Command:
        raise AssertionError("stepped down")

    first = small("--say", "unrecognized arguments", "--exit-at-start", "2", step_down=never)
    with boot_of(settings, first) as boot, pytest.raises(EngineStartError, match="exit code 2"):
        boot.wait_ready()


def test_the_worker_keeps_its_keys_from_the_child(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNPOD_AI_API_KEY", "platform")
    monkeypatch.setenv("BUCKET_SECRET_ACCESS_KEY", "bucket")
    code = "import os; print(sorted(os.environ)); print(os.environ['ENGINE_API_KEY'])"
    command = Command(lambda port: (sys.executable, "-c", code))
    with boot_of(settings, command) as boot, pytest.raises(EngineStartError) as caught:
        boot.wait_ready()
    printed = str(caught.value.details["log"])
    assert "ENGINE_API_KEY" in printed
    assert "'PATH'" in printed
    assert "RUNPOD_AI_API_KEY" not in printed
    assert "BUCKET_SECRET_ACCESS_KEY" not in printed
    assert "'***'" in printed


def test_an_external_engine_is_waited_for_and_never_stopped(small_engine: Callable[..., EngineServer]) -> None:
    with small_engine("--samples", str(SAMPLES)) as server:
        settings = Settings(
            glmocr_engine=EngineName.EXTERNAL, engine_url=f"{server.url}/v1/", engine_api_key="a-key-for-this-boot"
        )
        with start_engine(settings) as boot:
            engine = boot.wait_ready()
            assert engine.facts.model == "glm-ocr"
            assert boot.server is None
        assert server.alive()


def test_an_external_engine_that_is_not_there_ends_the_boot() -> None:
    settings = Settings(glmocr_engine=EngineName.EXTERNAL, engine_url="http://127.0.0.1:9", engine_start_timeout_s=0.01)
    with start_engine(settings) as boot, pytest.raises(EngineStartError, match="check ENGINE_URL"):
        boot.wait_ready()


def test_an_external_engine_that_refuses_the_key_says_so_at_once(small_engine: Callable[..., EngineServer]) -> None:
    with small_engine("--samples", str(SAMPLES)) as server:
        settings = Settings(glmocr_engine=EngineName.EXTERNAL, engine_url=server.url, engine_api_key="another")
        with start_engine(settings) as boot, pytest.raises(EngineStartError, match="check ENGINE_API_KEY"):
            boot.wait_ready()


def test_an_external_engine_needs_its_address() -> None:
    with pytest.raises(SettingsError, match="ENGINE_URL"):
        start_engine(Settings(glmocr_engine=EngineName.EXTERNAL))


def test_sglang_without_a_gpu_ends_the_boot_before_anything_starts() -> None:
    with pytest.raises(GateError, match="no NVIDIA GPU"):
        start_engine(Settings(glmocr_engine=EngineName.SGLANG, cuda_visible_devices=""))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    return tmp_path


def test_each_of_our_engines_has_a_command(weights: Path) -> None:
    sglang = Settings(sglang_profile="hopper/80gb", model_path=weights, sglang_extra_args="--context-length 8192")
    argv = command_for(sglang).argv(5003)
    assert argv[0] == "python3"
    assert argv[-2:] == ("--context-length", "8192")
    assert str(weights) in argv
    transformers = Settings(glmocr_engine=EngineName.TRANSFORMERS, model_path=weights)
    assert command_for(transformers).argv(5003)[-4:] == ("--host", "127.0.0.1", "--port", "5003")
    assert command_for(transformers).model == str(weights)
    rapidocr = Settings(glmocr_engine=EngineName.RAPIDOCR)
    argv = command_for(rapidocr).argv(5003)
    assert "handler.engine.rapidocr_server" in argv
    assert argv[-2:] == ("--api-key-env", "ENGINE_API_KEY")
