"""200 jobs, 40 at once, each with canaries of its own in text, file name, key and password: none turns up elsewhere."""

import asyncio
import base64
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from handler.engine.api import EngineReply, EngineRequest
from handler.settings import Settings
from tests.fakes.engine import FakeEngine, stop
from tests.support.coded_pages import read_code, text_of, write_pdf
from tests.support.reading_rig import Rig, reading_rig

JOBS = 200
PAGES = 2
AT_ONCE = 40


def canary(kind: str, job: int) -> str:
    """A word that belongs to this job only."""
    return f"{kind}-canary-{job:03d}x"


def answer(request: EngineRequest) -> EngineReply:
    """What the picture says, with its document's canary."""
    document, page = read_code(request.jpeg)
    return stop(f"{canary('text', document)} {text_of(document, page)}")


def job(number: int, folder: Path) -> dict[str, Any]:
    """Most are good; some have a wrong page range, some name a file that is not there."""
    content = write_pdf(folder / f"{number}.pdf", number, PAGES).read_bytes()
    options: dict[str, Any] = {
        "filename": canary("name", number),
        "idempotency_key": canary("key", number),
        "password": canary("password", number),
        "dpi": 72,
    }
    if number % 10 == 3:
        options["pages"] = "9-"
    if number % 10 == 7:
        return {"volume_path": canary("path", number), **options}
    return {"file_base64": base64.b64encode(content).decode(), **options}


async def run_all(rig: Rig, folder: Path) -> dict[int, dict[str, Any] | None]:
    """The answer to each job; None for those that were cancelled on the way."""
    gate = asyncio.Semaphore(AT_ONCE)
    chance = random.Random(7)

    async def run(number: int) -> dict[str, Any] | None:
        async with gate:
            asked = asyncio.create_task(rig.ask(job(number, folder), job_id=canary("id", number)))
            if number % 10 == 9:
                await asyncio.sleep(chance.random() * 0.2)
                asked.cancel()
            [done] = await asyncio.gather(asked, return_exceptions=True)
            return None if isinstance(done, asyncio.CancelledError) else done

    answers = await asyncio.gather(*map(run, range(JOBS)))
    return dict(enumerate(answers))


def foreign(text: str, number: int) -> list[str]:
    """Canaries in `text` that belong to another job."""
    words = {word for word in text.replace('"', " ").replace(",", " ").split() if "-canary-" in word}
    return sorted(word for word in words if f"-canary-{number:03d}x" not in word)


@pytest.mark.timeout(600)
async def test_no_canary_leaves_its_job(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    settings = Settings(runpod_volume_path=volume, page_memory_mb=64)
    with reading_rig(settings, FakeEngine(answer)) as rig:
        answers = await run_all(rig, tmp_path)
        late = await rig.ask({"probe": True}, job_id="late")
    assert "-canary-" not in json.dumps(late)
    complete = 0
    for number, result in answers.items():
        if result is None:
            continue
        assert foreign(json.dumps(result), number) == []
        for line in result["debug"]["log"]:
            assert json.loads(line)["job"] == canary("id", number)
        if "error" not in result:
            complete += 1
            assert canary("text", number) in result["markdown"]
            assert result["status"] == "complete", [page for page in result["pages"] if page["status"] != "ok"]
    assert complete >= JOBS * 7 // 10
    for kept in (volume / "glmocr").rglob("*.gz"):
        owners = {word[-4:] for word in gzip.decompress(kept.read_bytes()).decode().split() if "-canary-" in word}
        assert len(owners) <= 1, kept
    assert all(
        canary("password", n).encode() not in kept.read_bytes() for n in range(JOBS) for kept in _files(volume, n)
    )


def _files(volume: Path, number: int) -> list[Path]:
    """A tenth of the files, another one for each job: all of them 200 times would take minutes."""
    return [path for path in sorted(volume.rglob("*")) if path.is_file()][number % 10 :: 10]
