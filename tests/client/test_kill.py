"""Kill -9 inside the POST and while polling: the short form of tests/chaos/test_client_kill.py."""

import signal
import threading
import time
from pathlib import Path

import pytest
from glmocr_runpod import Client
from glmocr_runpod.effects import Outcome, Request
from glmocr_runpod.errors import Exit
from glmocr_runpod.resume import Stage
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


class InterruptedWhileSending:
    """Presses Ctrl-C in the main thread while the submission is on its way."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    def send(self, request: Request) -> Outcome:
        outcome = self._inner.send(request)
        if request.path == "run":
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return outcome

    def close(self) -> None:
        self._inner.close()


def test_a_notebook_interrupted_inside_the_post_knows_its_job(rig: Rig) -> None:
    inner = RequestsTransport(rig.config.base_url, rig.config.runpod_api_key)
    with Client(config=rig.config, transport=InterruptedWhileSending(inner)) as client:
        with pytest.raises(KeyboardInterrupt):
            client.parse(b"%PDF-1.7", name="a.pdf")
        assert [entry.stage for entry in client.ledger.entries()] == [Stage.SUBMITTED]
    with Client(config=rig.config) as client, rig.worker():
        client.parse(b"%PDF-1.7", name="a.pdf")
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
