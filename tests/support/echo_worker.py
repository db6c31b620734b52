"""A small real worker on the RunPod SDK: does what the job's input says. For tests of the emulator."""

import asyncio
import os
from typing import Any

import runpod
from runpod.http_client import AsyncClientSession
from runpod.serverless.modules.rp_http import send_result

from handler.supervisor import die_with_parent


async def handler(job: dict[str, Any]) -> dict[str, Any]:
    """Echo; `steps` progress posts, `sleep_s`, `fill` bytes of output, `error`, `refresh`, `die`."""
    wish = job["input"]
    if wish.get("die"):
        os._exit(9)
    for step in range(wish.get("steps", 0)):
        async with AsyncClientSession() as session:
            await send_result(session, {"status": "IN_PROGRESS", "output": {"pages_done": step + 1}}, job)
    await asyncio.sleep(wish.get("sleep_s", 0))
    answer: dict[str, Any] = {"echo": wish, "worker": os.environ["RUNPOD_POD_ID"], "fill": "x" * wish.get("fill", 0)}
    if wish.get("error"):
        answer["error"] = wish["error"]
    if wish.get("refresh"):
        answer["refresh_worker"] = True
    return answer


if __name__ == "__main__":
    os.register_at_fork(after_in_child=die_with_parent)
    concurrency = int(os.environ.get("ECHO_CONCURRENCY", "4"))
    runpod.serverless.start({"handler": handler, "concurrency_modifier": lambda _: concurrency})
