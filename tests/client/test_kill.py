"""Kill -9 inside the POST and while polling: the short form of tests/chaos/test_client_kill.py."""

import concurrent.futures.thread
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from glmocr_runpod import Client, sync
from glmocr_runpod.effects import Outcome, Request
from glmocr_runpod.errors import Exit
from glmocr_runpod.ledger import SqliteLedger
from glmocr_runpod.resume import Entry, Stage
from glmocr_runpod.sync import Transport
from glmocr_runpod.transport import RequestsTransport

from emulator.faults import Fault, FaultKind
from tests.client.killing import POST_S, Instant, jobs_of, kill_and_call_again, parse, slowly
from tests.client.rig import Rig


@pytest.mark.parametrize("stage", [Stage.SENDING, Stage.SUBMITTED])
def test_killed_and_called_again(rig: Rig, tmp_path: Path, stage: Stage) -> None:
    document = tmp_path / "document.pdf"
    document.write_bytes(b"%PDF-1.7")
    rig.do(lambda: rig.emulator.faults.add(Fault(FaultKind.DELAY, "run", delay_s=POST_S, times=1)))
    with rig.worker(slowly):
        assert kill_and_call_again(rig, document, tmp_path / "out", Instant(stage, 0.05)) == stage


def test_several_clients_at_once_share_one_job(rig: Rig, tmp_path: Path) -> None:
    document = tmp_path / "document.pdf"
    document.write_bytes(b"%PDF-1.7")
    with rig.worker(slowly):
        clients = [parse(rig, document, tmp_path / f"out-{number}") for number in range(4)]
        assert [client.wait(60) for client in clients] == [Exit.DEGRADED] * 4
    for client in clients:
        client.communicate()
    assert jobs_of(rig, document) == 1


BREAKABLE = (sync.__file__, concurrent.futures.thread.__file__)
"""Not all: a Ctrl-C between two lines of a lock may leave it locked, and one in a weak reference's callback is lost."""


class CtrlC:
    """A transport, and a Ctrl-C at the caller's line with this number if the submission has begun by then."""

    def __init__(self, inner: Transport, line: int) -> None:
        self._inner = inner
        self.lines_left = line
        self._sending = threading.Event()
        self._pressed = threading.Event()

    def send(self, request: Request) -> Outcome:
        if request.path == "run":
            self._sending.set()
            self._pressed.wait(0.02)
        return self._inner.send(request)

    def close(self) -> None:
        self._inner.close()

    def trace(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line" and frame.f_code.co_filename in BREAKABLE:
            self.lines_left -= 1
            # The caller's thread is slow here, so that those it started are ahead of it.
            if self.lines_left == -1 and self._sending.wait(0.02):
                self._pressed.set()
                raise KeyboardInterrupt
        return self.trace


def test_a_notebook_interrupted_at_any_line_while_a_post_is_on_its_way_knows_its_job(rig: Rig) -> None:
    line = interruptions = 0
    reached = True
    while reached:
        transport = CtrlC(RequestsTransport(rig.config.base_url, rig.config.runpod_api_key), line)
        with Client(config=rig.config, transport=transport) as client:
            sys.settrace(transport.trace)
            try:
                client.submit(b"%%PDF-1.7 %d" % line)
            except KeyboardInterrupt:
                interruptions += 1
            finally:
                sys.settrace(None)
            line += 1
            assert [entry.stage for entry in client.ledger.entries()] == [Stage.SUBMITTED] * line
        reached = transport.lines_left < 0
    assert interruptions > 10
    assert len(rig.jobs()) == line


class PressedTwice(CtrlC):
    """Two Ctrl-C while a submission is on its way, which goes on when the caller has left."""

    def __init__(self, inner: Transport) -> None:
        super().__init__(inner, 0)
        self.left = threading.Event()

    def send(self, request: Request) -> Outcome:
        main = threading.main_thread().ident or 0
        signal.pthread_kill(main, signal.SIGINT)
        while "shutdown" not in names_of(sys._current_frames()[main]):
            time.sleep(0.001)
        signal.pthread_kill(main, signal.SIGINT)
        self.left.wait(60)
        return self._inner.send(request)


def names_of(frame: FrameType | None) -> Iterator[str]:
    while frame is not None:
        yield frame.f_code.co_name
        frame = frame.f_back


class Watched(SqliteLedger):
    """Tells when a job stands in it as submitted."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.submitted = threading.Event()

    def put(self, entry: Entry) -> None:
        super().put(entry)
        if entry.stage is Stage.SUBMITTED:
            self.submitted.set()


def test_pressed_twice_the_caller_leaves_and_the_submission_is_noted_all_the_same(rig: Rig) -> None:
    transport = PressedTwice(RequestsTransport(rig.config.base_url, rig.config.runpod_api_key))
    ledger = Watched(rig.state)
    with Client(config=rig.config, transport=transport, ledger=ledger) as client:
        with pytest.raises(KeyboardInterrupt):
            client.submit(b"%PDF-1.7")
        transport.left.set()
        assert ledger.submitted.wait(60)
    assert len(rig.jobs()) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_in_good_order(rig: Rig, tmp_path: Path, number: signal.Signals) -> None:
    document = tmp_path / "document.pdf"
    document.write_bytes(b"%PDF-1.7")
    client = parse(rig, document, tmp_path / "out")
    while not rig.jobs():
        time.sleep(0.02)
    client.send_signal(number)
    _, said = client.communicate(timeout=60)
    assert client.returncode == Exit.INTERRUPTED
    assert b"call again to go on" in said
    with rig.worker():
        assert parse(rig, document, tmp_path / "out").wait(60) == Exit.DEGRADED
    assert jobs_of(rig, document) == 1
