import itertools
from pathlib import Path

import pytest

from handler.engine.gpu import Gpu
from handler.engine.sglang import choose_profile, ran_out_of_memory, smaller
from handler.errors import GateError, SettingsError

VISION_OVERRIDE = '{"vision_config":{"projection_intermediate_size":4608}}'


def gpu(capability: str = "8.9", memory: int | None = 24564, cuda: tuple[int, int] = (12, 9)) -> Gpu:
    major, minor = map(int, capability.split("."))
    return Gpu(0, f"card {capability}", (major, minor), memory, memory, "575.57", cuda)


@pytest.mark.parametrize(
    ("capability", "memory", "name"),
    [
        ("8.6", 8192, "ampere-ada/8gb"),
        ("8.6", 12288, "ampere-ada/12gb"),
        ("8.9", 16380, "ampere-ada/16gb"),
        ("8.6", 23028, "ampere-ada/24gb"),
        ("8.9", 24564, "ampere-ada/24gb"),
        ("12.0", 32607, "blackwell-rtx/32gb"),
        ("8.9", 46068, "ampere-ada/48gb"),
        ("8.0", 81920, "ampere-ada/80gb"),
        ("9.0", 81559, "hopper/80gb"),
        ("9.0", 143771, "hopper/80gb"),
        ("10.0", 183359, "blackwell/80gb"),
        ("12.1", None, "spark/48gb"),
    ],
)
def test_the_profile_follows_capability_and_memory(capability: str, memory: int | None, name: str) -> None:
    assert choose_profile(None, [gpu(capability, memory)], "glm-ocr").name == name


@pytest.mark.parametrize("memory", [8192, 12288, 16380, 24564, 32607, 46068, 81920])
def test_weights_pool_and_the_rest_fit_into_the_card(memory: int) -> None:
    """The pool holds one context; what is left holds the layout model and image preprocessing."""
    flags = choose_profile(None, [gpu(memory=memory)], "glm-ocr").flags
    static_mib = float(flags["mem-fraction-static"]) * memory
    pool_tokens = (static_mib - 2.65e9 / 2**20) * 2**20 / 65536
    assert pool_tokens > int(flags["context-length"])
    assert memory - static_mib > 1.8 * 1024 + 1.5 * 1024
    assert int(flags["cuda-graph-max-bs-decode"]) == int(flags["max-running-requests"])


def test_spark_gets_triton_without_graphs_and_a_small_share_of_the_machine() -> None:
    flags = choose_profile(None, [gpu("12.1", None)], "glm-ocr").flags
    assert flags["attention-backend"] == "triton"
    assert flags["cuda-graph-backend-decode"] == flags["cuda-graph-backend-prefill"] == "disabled"
    assert flags["mem-fraction-static"] == 0.3


@pytest.mark.parametrize("capability", ["6.1", "7.0", "7.5"])
def test_turing_and_older_are_refused_with_advice(capability: str) -> None:
    with pytest.raises(GateError, match=rf"capability {capability}; .* needs 8.0 \(Ampere\)"):
        choose_profile(None, [gpu(capability)], "glm-ocr")


def test_a_machine_without_a_gpu_is_refused_with_advice() -> None:
    with pytest.raises(GateError, match="GLMOCR_ENGINE=rapidocr"):
        choose_profile(None, [], "glm-ocr")


def test_a_driver_that_is_too_old_for_the_gpu_is_refused() -> None:
    with pytest.raises(GateError, match=r"offers CUDA 12\.4, card 12\.0 needs 12\.8"):
        choose_profile(None, [gpu("12.0", cuda=(12, 4))], "glm-ocr")
    assert choose_profile(None, [gpu("8.9", cuda=(13, 0))], "glm-ocr").name == "ampere-ada/24gb"


def test_a_card_that_is_too_small_or_unknown_is_refused() -> None:
    with pytest.raises(GateError, match=r"has 4\.0 GiB"):
        choose_profile(None, [gpu(memory=4096)], "glm-ocr")
    with pytest.raises(GateError, match="name the nearest one in SGLANG_PROFILE"):
        choose_profile(None, [gpu("13.7")], "glm-ocr")


def test_a_named_profile_needs_no_detection_and_must_exist() -> None:
    assert choose_profile("hopper/48gb", [], "glm-ocr").name == "hopper/48gb"
    for name in ("hopper", "hopper/3gb", "volta/16gb", "cpu/8gb"):
        with pytest.raises(SettingsError, match=r"no such profile; it is one of ampere-ada"):
            choose_profile(name, [gpu()], "glm-ocr")
    with pytest.raises(SettingsError, match=r"\+nextn"):
        choose_profile("hopper/48gb+eagle", [], "glm-ocr")


@pytest.mark.parametrize("wanted", ["+nextn", "ampere-ada/24gb+nextn"])
def test_speculation_is_a_variant_with_its_four_settings(wanted: str) -> None:
    profile = choose_profile(wanted, [gpu()], "glm-ocr")
    assert profile.name == "ampere-ada/24gb+nextn"
    speculative = {flag: value for flag, value in profile.flags.items() if flag.startswith("speculative")}
    assert list(speculative.values()) == ["NEXTN", 3, 1, 4]
    plain = choose_profile(None, [gpu()], "glm-ocr").flags
    assert not any(flag.startswith("speculative") for flag in plain)


def test_several_gpus_serve_in_parallel_sized_by_the_smallest() -> None:
    profile = choose_profile(None, [gpu(memory=24564), gpu(memory=16380)], "glm-ocr")
    assert profile.flags["data-parallel-size"] == 2
    assert profile.name == "ampere-ada/16gb"


def test_the_command_line_holds_what_must_never_be_missing_and_ends_with_the_operators_words() -> None:
    profile = choose_profile(None, [gpu()], "served")
    argv = profile.argv("python3", Path("/models/glm ocr"), 5002, "--context-length 4096 --log-level 'debug'")
    assert argv[1].endswith("sglang_launcher.py")
    pairs = dict(itertools.pairwise(argv))
    assert pairs["--host"] == "127.0.0.1"
    assert pairs["--port"] == "5002"
    assert pairs["--model-path"] == "/models/glm ocr"
    assert pairs["--served-model-name"] == "served"
    assert pairs["--json-model-override-args"] == VISION_OVERRIDE
    assert "--enable-metrics" in argv
    assert "--trust-remote-code" not in argv
    assert "--max-total-tokens" not in argv
    assert "--api-key" not in argv
    assert argv[-4:] == ("--context-length", "4096", "--log-level", "debug")


def test_the_step_after_running_out_of_memory_is_smaller_and_without_graphs() -> None:
    profile = choose_profile(None, [gpu()], "glm-ocr")
    step = smaller(profile)
    assert step.flags["mem-fraction-static"] == 0.66
    assert step.flags["cuda-graph-backend-decode"] == "disabled"
    assert step.name == "ampere-ada/24gb, smaller"
    assert profile.flags["mem-fraction-static"] == 0.76


def test_running_out_of_memory_is_told_from_other_deaths() -> None:
    assert ran_out_of_memory(["x", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"])
    assert ran_out_of_memory(["RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."])
    assert not ran_out_of_memory(["error: unrecognized arguments: --nonsense"])
