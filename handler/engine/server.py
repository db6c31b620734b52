"""The engine's process, with one owner: started on enter, gone with everything it spawned on exit."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from handler.errors import BootError

TAIL_LINES = 400
LINE_LIMIT = 8192
"""Bytes of one log line; a longer one is cut into several."""
POLL_S = 0.05
SUPERVISOR = Path(__file__).parents[1] / "supervisor.py"
SUPERVISOR_MARGIN_S = 8.0
"""What the supervisor may take beyond the grace period before it is killed itself."""
LOOPBACK = "127.0.0.1"
PORTS_TRIED = 20


class EngineStartError(BootError):
    """The engine did not come up; its last lines are in the details."""


def free_port(wanted: int) -> int:
    """`wanted` on the loopback interface, or the next port after it that nobody holds."""
    for port in [*range(wanted, min(wanted + PORTS_TRIED, 65536)), 0]:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise EngineStartError("no free port on the loopback interface")


class EngineServer:
    """One child process that serves HTTP on the loopback interface.

    It runs in a session of its own below `supervisor.py`, which ends it when this process dies. `env` is its whole
    environment. `secret` is masked wherever it appears in its output, which goes to `log` and to `tail`.
    `grace_s` is the time between SIGTERM and SIGKILL, seconds.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        port: int,
        log: logging.Logger,
        *,
        secret: str | None = None,
        grace_s: float = 5.0,
    ) -> None:
        self.argv = tuple(argv)
        self.port = port
        self._env = dict(env)
        self._log = log
        self._secret = secret
        self._grace_s = grace_s
        self._lines: deque[str] = deque(maxlen=TAIL_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Base address."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Of the supervisor, which leads the session and the process group; None before the start."""
        return self._process.pid if self._process else None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process; whoever calls this calls `stop`."""
        self._process = subprocess.Popen(  # noqa: S603 - argv is ours
            [sys.executable, "-I", "-S", str(SUPERVISOR), str(os.getpid()), str(self._grace_s), "--", *self.argv],
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(
            target=self._read_output, args=(self._process.stdout,), name="engine-output", daemon=True
        )
        self._reader.start()

    def alive(self) -> bool:
        """Whether the engine's process runs."""
        return self._process is not None and self._process.poll() is None

    def exit_code(self) -> int | None:
        """None while it runs or before it started; 128 + N when signal N ended it."""
        return self._process.poll() if self._process else None

    def tail(self, count: int = TAIL_LINES) -> list[str]:
        """The last lines of its output, oldest first."""
        return list(self._lines)[-count:]

    async def wait_ready(self, probe: Callable[[], Awaitable[bool]], deadline_s: float) -> None:
        """Ask `probe` until it says yes. Raises `EngineStartError` when the process ends or the time is up."""
        deadline = time.monotonic() + deadline_s
        while not await probe():
            if not self.alive():
                raise self._start_error(f"the engine ended with exit code {self.exit_code()} before it was ready")
            if time.monotonic() > deadline:
                raise self._start_error(
                    f"not ready after {deadline_s:.0f} s; raise ENGINE_START_TIMEOUT_S if it is only slow"
                )
            await asyncio.sleep(POLL_S)

    def stop(self) -> None:
        """SIGTERM to the whole group, a bounded wait, SIGKILL. Stopping twice is harmless."""
        if self._process is None:
            return
        code = self.exit_code()
        if code is not None and code < 0:  # a signal ended the supervisor itself; its group may live on
            self._signal_group(signal.SIGKILL)
        elif self.alive():
            started = time.monotonic()
            self._signal_group(signal.SIGTERM)
            try:
                self._process.wait(self._grace_s + SUPERVISOR_MARGIN_S)
            except subprocess.TimeoutExpired:
                self._signal_group(signal.SIGKILL)
                self._process.wait()
            self._log.info(
                "engine stopped with exit code %s after %.1f s", self.exit_code(), time.monotonic() - started
            )
        if self._reader is not None:
            self._reader.join(timeout=1.0)

    def _signal_group(self, number: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _start_error(self, message: str) -> EngineStartError:
        if self._reader is not None and not self.alive():
            self._reader.join(timeout=1.0)
        lines = self.tail(40)
        last = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
        return EngineStartError(f"{message}; its last line: {last}", exit_code=self.exit_code(), log=[*lines])

    def _read_output(self, stream: IO[bytes]) -> None:
        with stream:
            while chunk := stream.readline(LINE_LIMIT):
                line = chunk.decode(errors="replace").rstrip()
                if self._secret:
                    line = line.replace(self._secret, "***")
                self._lines.append(line)
                self._log.info("%s", line, extra={"fields": {"source": "engine"}})
