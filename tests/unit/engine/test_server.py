import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from handler.engine.server import EngineServer, EngineStartError, free_port
from tests.support.survivors import processes, survivors
from tests.unit.engine.conftest import KEY, client_of, small_engine_argv, written

Make = Callable[..., EngineServer]


async def ready(server: EngineServer, deadline_s: float = 10.0) -> None:
    async with client_of(server) as engine:
        await server.wait_ready(engine.healthy, deadline_s)


async def gone(*pids: int) -> bool:
    """Whether these have ended, or end in time."""
    return not await asyncio.to_thread(survivors, processes(*pids))


async def test_becomes_ready_and_stops_cleanly(small_engine: Make) -> None:
    with small_engine("--say", "hello", "--ready-after", "0.3") as server:
        await ready(server)
        assert server.alive()
        assert server.exit_code() is None
    assert not server.alive()
    assert server.exit_code() == 0
    assert "hello" in server.tail()


async def test_death_at_start_is_reported_with_code_and_last_line(small_engine: Make) -> None:
    expected = pytest.raises(EngineStartError, match=r"exit code 2 .*last line: out of something")
    with (
        small_engine("--say", "first", "--say", "out of something", "--exit-at-start", "2") as server,
        expected as caught,
    ):
        await ready(server)
    assert caught.value.details["exit_code"] == 2
    assert caught.value.details["log"] == ["first", "out of something"]


async def test_a_program_that_cannot_be_executed_is_a_start_error() -> None:
    expected = pytest.raises(EngineStartError, match=r"exit code 127 .*cannot execute /nonexistent/engine")
    with EngineServer(["/nonexistent/engine"], {}, 1, logging.getLogger("handler.engine")) as server, expected:
        await ready(server)


async def test_never_ready_ends_at_the_deadline(small_engine: Make) -> None:
    with small_engine("--stuck-health") as server, pytest.raises(EngineStartError, match="ENGINE_START_TIMEOUT_S"):
        await ready(server, deadline_s=0.3)


async def test_death_while_serving_is_seen(small_engine: Make) -> None:
    with small_engine() as server:
        await ready(server)
        engine_pid = psutil.Process(server.pid).children()[0].pid
        os.kill(engine_pid, signal.SIGKILL)
        assert await gone(server.pid or 0)
        assert not server.alive()
        assert server.exit_code() == 128 + signal.SIGKILL


async def test_an_engine_that_ignores_sigterm_is_killed_after_the_grace_period(small_engine: Make) -> None:
    with small_engine("--ignore-term", grace_s=0.2) as server:
        await ready(server)
    assert server.exit_code() == 128 + signal.SIGKILL


@pytest.mark.parametrize("end", ["stop", "engine dies", "supervisor dies"])
async def test_a_grandchild_in_its_own_session_does_not_survive(small_engine: Make, tmp_path: Path, end: str) -> None:
    with small_engine("--grandchild", str(tmp_path / "pid")) as server:
        await ready(server)
        grandchild = int(await written(tmp_path / "pid"))
        engine_pid = psutil.Process(server.pid).children()[0].pid
        if end == "engine dies":
            os.kill(engine_pid, signal.SIGKILL)
            assert await gone(grandchild)
        elif end == "supervisor dies":
            os.kill(server.pid or 0, signal.SIGKILL)
            assert await gone(engine_pid)
            os.kill(grandchild, signal.SIGKILL)  # nobody is left who could know it
    assert await gone(grandchild, engine_pid)


OWNER = """
import logging, sys, time
from handler.engine.server import EngineServer
argv = sys.argv[1:]
server = EngineServer(argv, {"PATH": "/usr/bin"}, 0, logging.getLogger("x"))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


async def test_nothing_survives_a_killed_worker(tmp_path: Path) -> None:
    argv = small_engine_argv(free_port(0), "--ignore-term", "--grandchild", str(tmp_path / "pid"))
    owner = subprocess.Popen([sys.executable, "-c", OWNER, *argv], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    supervisor = int(owner.stdout.readline())
    grandchild = int(await written(tmp_path / "pid"))
    engine = psutil.Process(supervisor).children()[0].pid
    owner.kill()
    owner.wait()
    assert await gone(supervisor, engine, grandchild)


async def test_it_outlives_the_thread_that_started_it(small_engine: Make) -> None:
    server = small_engine()
    await asyncio.to_thread(server.start)
    executor_done = asyncio.get_running_loop().shutdown_default_executor()
    await executor_done
    try:
        await ready(server)
        assert server.alive()
    finally:
        server.stop()


async def test_its_key_never_reaches_log_or_tail(small_engine: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="handler.engine")
    with small_engine("--tell-key") as server:
        await ready(server)
    assert "api_key=***" in server.tail()
    assert KEY not in caplog.text


async def test_the_output_kept_is_bounded(small_engine: Make) -> None:
    with small_engine(*(f"--say=line {n}" for n in range(500)), "--say", "x" * 20000) as server:
        await ready(server)
    lines = server.tail()
    assert len(lines) == 400
    assert max(map(len, lines)) <= 8192


def test_a_free_port_is_taken_as_wanted_and_the_next_one_when_it_is_held() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        held = holder.getsockname()[1]
        assert free_port(held) != held
    assert free_port(held) == held


def test_stopping_before_the_start_or_twice_is_harmless(small_engine: Make) -> None:
    server = small_engine()
    server.stop()
    with server:
        started = time.monotonic()
        assert server.alive()
        assert time.monotonic() >= started
    server.stop()
