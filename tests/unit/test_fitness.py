from dataclasses import dataclass, replace

import pytest

from handler import fitness
from handler.engine.api import EngineFacts, EngineName
from handler.engine.gpu import Gpu
from handler.errors import GateError

GOOD = EngineFacts(
    name=EngineName.SGLANG,
    version="0.5.17",
    model="glm-ocr",
    context_length=32768,
    kv_pool_tokens=236000,
    max_input_tokens=32762,
    slots=96,
)
SILENT = EngineFacts(name=EngineName.EXTERNAL)
CARD = Gpu(0, "RTX 4090", (8, 9), 24564, 5000, "575.57", (12, 9))


def test_a_good_engine_passes_every_gate() -> None:
    assert fitness.model_served(GOOD, "glm-ocr") == "glm-ocr"
    assert fitness.pool_holds_context(GOOD) == "236000 >= 32768 tokens"
    assert fitness.input_fits(GOOD) == "32762 tokens"
    assert fitness.speculation_as_wanted(GOOD, wanted=False) == "off"
    assert fitness.speculation_as_wanted(replace(GOOD, speculation=(3, 1, 4)), wanted=True).startswith("NEXTN")
    assert fitness.gpu_in_use([CARD]) == "RTX 4090: 5000 MiB free"


def test_an_external_engine_that_tells_nothing_passes() -> None:
    assert fitness.model_served(SILENT, "glm-ocr") == "not told"
    assert fitness.pool_holds_context(SILENT) == "not told"
    assert fitness.input_fits(SILENT) == "not told"


def test_another_model_is_refused() -> None:
    with pytest.raises(GateError, match=r"serves 'qwen'.*--served-model-name"):
        fitness.model_served(replace(GOOD, model="qwen"), "glm-ocr")


@pytest.mark.parametrize("name", list(EngineName))
def test_a_pool_smaller_than_the_context_is_refused(name: EngineName) -> None:
    with pytest.raises(GateError, match=r"holds 32767 tokens, less than the context of 32768.*--max-total-tokens"):
        fitness.pool_holds_context(replace(GOOD, name=name, kv_pool_tokens=32767))
    assert fitness.pool_holds_context(replace(GOOD, name=name, kv_pool_tokens=32768))


def test_an_sglang_that_hides_its_pool_is_refused() -> None:
    with pytest.raises(GateError, match="not the server this worker knows"):
        fitness.pool_holds_context(replace(GOOD, kv_pool_tokens=None))


def test_a_short_context_or_input_is_refused() -> None:
    with pytest.raises(GateError, match=r"too short.*--context-length to 8192"):
        fitness.input_fits(replace(GOOD, context_length=4096))
    with pytest.raises(GateError, match=r"prompts of 20000 tokens only.*max_req_input_len"):
        fitness.input_fits(replace(GOOD, max_input_tokens=20000))
    with pytest.raises(GateError, match="prompts of None"):
        fitness.input_fits(replace(GOOD, max_input_tokens=None))


@pytest.mark.parametrize("speculation", [None, (5, 4, 8)])
def test_speculation_with_other_settings_is_refused(speculation: tuple[int, int, int] | None) -> None:
    with pytest.raises(GateError, match=r"asks for NEXTN .*\+nextn from SGLANG_PROFILE"):
        fitness.speculation_as_wanted(replace(GOOD, speculation=speculation), wanted=True)


def test_a_gpu_that_is_not_used_full_or_lost_is_refused() -> None:
    with pytest.raises(GateError, match=r"holds only 564 MiB.*runs on the CPU"):
        fitness.gpu_in_use([replace(CARD, memory_free=24000)])
    with pytest.raises(GateError, match=r"has 200 MiB left.*lower --mem-fraction-static"):
        fitness.gpu_in_use([CARD, replace(CARD, index=1, memory_free=200)])
    with pytest.raises(GateError, match="lost it"):
        fitness.gpu_in_use([])
    assert fitness.gpu_in_use([replace(CARD, memory_total=None, memory_free=None)])


async def golden_page_wrong() -> str:
    raise GateError("golden page: 3% of its words came back")


async def golden_page_right() -> str:
    return "98%"


async def test_gates_run_in_order_and_the_first_failure_is_named() -> None:
    gates: list[tuple[str, fitness.Gate]] = [("model", lambda: "glm-ocr"), ("golden page", golden_page_right)]
    reports = await fitness.run(gates)
    assert [(report.name, report.found) for report in reports] == [("model", "glm-ocr"), ("golden page", "98%")]
    assert fitness.as_json(reports)["model"] == {"seconds": reports[0].seconds, "found": "glm-ocr"}
    gates += [("golden page", golden_page_wrong), ("never", lambda: pytest.fail("ran after a failure"))]
    with pytest.raises(GateError, match=r"^gate golden page: golden page: 3%") as caught:
        await fitness.run(gates)
    assert caught.value.details == {"gate": "golden page"}


@dataclass
class Started:
    wants_nextn: bool = False
    needs_gpu: bool = False

    def gpus(self) -> list[Gpu]:
        return [CARD]


@pytest.mark.parametrize(
    ("facts", "start", "gate"),
    [
        (replace(GOOD, model="qwen"), Started(), "model"),
        (replace(GOOD, kv_pool_tokens=1), Started(), "KV pool"),
        (replace(GOOD, max_input_tokens=1), Started(), "input"),
        (GOOD, Started(wants_nextn=True), "speculation"),
        (GOOD, Started(needs_gpu=True), None),
    ],
)
async def test_every_gate_of_the_engine_is_asked(facts: EngineFacts, start: Started, gate: str | None) -> None:
    gates = fitness.engine_gates(facts, "glm-ocr", start)
    if gate is None:
        assert [report.name for report in await fitness.run(gates)][-1] == "GPU"
        return
    with pytest.raises(GateError) as caught:
        await fitness.run(gates)
    assert caught.value.details == {"gate": gate}
