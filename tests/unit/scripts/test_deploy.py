from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from scripts import deploy
from scripts.deploy_plan import differences, read_target
from tests.unit.scripts.rest_api import KEY, Account, serving

OLD, NEW = (f"ghcr.io/acme/worker@sha256:{digit * 64}" for digit in "12")
Run = Callable[..., int]


@pytest.fixture
def account() -> Iterator[Account]:
    with serving() as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "endpoint.yaml"
    path.write_text(deploy.FILE.read_text())
    return path


@pytest.fixture
def run(account: Account, file: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line, against the stand-in."""
    monkeypatch.setenv("RUNPOD_API_KEY", KEY)
    monkeypatch.setenv("RUNPOD_REST_URL", account.url)
    monkeypatch.setattr("time.sleep", lambda _: None)

    def run(command: str, *arguments: str, image: str = OLD) -> int:
        given = ["deploy", command, "--file", str(file), "--image", image, *arguments]
        monkeypatch.setattr("sys.argv", given)
        return deploy.main()

    return run


def test_the_shipped_file_is_what_the_docs_promise() -> None:
    target = read_target(deploy.FILE, None)

    assert (target.workers.min, target.workers.max, target.idle_timeout_s) == (0, 3, 300)
    assert target.flashboot
    assert all(tuple(map(int, version.split("."))) >= (12, 8) for version in target.cuda_versions)


def test_from_an_empty_account_to_an_endpoint_and_nothing_the_second_time(
    run: Run, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("plan") == 2
    assert run("apply", "--yes") == 0
    (endpoint,) = account.endpoints.values()
    (template,) = account.templates.values()
    assert template["imageName"] == OLD
    assert template["containerRegistryAuthId"] == "auth1"
    assert endpoint["networkVolumeId"] == "vol1"
    assert endpoint["executionTimeoutMs"] == 3_600_000
    assert endpoint["name"] == "glmocr -fb"

    capsys.readouterr()
    assert run("plan") == 0
    assert capsys.readouterr().out == "nothing to change\n"
    assert run("apply", "--yes") == 0
    assert account.writes == ["POST templates", "POST endpoints"]


def test_a_new_image_is_shown_rolled_out_and_waited_for(
    run: Run, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    run("apply", "--yes")
    account.workers = [{"id": "w1", "desiredStatus": "RUNNING", "templateId": "temp1"}]
    account.stale_polls = 2
    capsys.readouterr()

    assert run("apply", "--yes", image=NEW) == 0

    said = capsys.readouterr().out
    assert f'imageName: "{OLD}" -> "{NEW}"' in said
    assert "1 workers of the template before are left" in said
    assert "worker w1 RUNNING template temp2" in said
    assert f"image {NEW}\n" in said
    assert account.endpoints["endp1"]["templateId"] == "temp2"


def test_rollback_goes_to_the_template_before_and_no_further(
    run: Run, account: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    run("apply", "--yes")
    run("apply", "--yes", image=NEW)

    assert run("rollback") == 0
    assert account.endpoints["endp1"]["templateId"] == "temp1"
    assert capsys.readouterr().out.endswith(f"image {OLD}\n")
    assert run("rollback") == 1
    assert "does not name the one before" in capsys.readouterr().err


def test_other_fields_of_the_file_change_in_place(run: Run, account: Account, file: Path) -> None:
    run("apply", "--yes")
    file.write_text(file.read_text().replace("max: 3", "max: 5"))

    assert run("apply", "--yes") == 0

    assert account.endpoints["endp1"]["workersMax"] == 5
    assert account.writes == ["POST templates", "POST endpoints", "PATCH endpoints"]


def test_without_a_yes_nothing_happens(run: Run, account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "")

    assert run("apply") == 1
    assert account.writes == []


def test_workers_that_stay_old_are_a_failure(run: Run, account: Account, capsys: pytest.CaptureFixture[str]) -> None:
    run("apply", "--yes")
    account.workers = [{"id": "w1", "templateId": "temp1"}]
    account.stale_polls = 1000

    assert run("apply", "--yes", "--timeout", "0", image=NEW) == 1
    assert "still run the template before" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        ({"image": "ghcr.io/acme/worker:latest"}, "image"),
        ({"workers": {"min": 0, "max": 0}}, "workers.max"),
        ({"gpus": ["x"]}, "gpus"),
        ({}, "no image named"),
        ({"image": OLD, "network_volume": "absent"}, "0 of the account's networkvolumes are called 'absent'"),
    ],
    ids=["tag instead of digest", "no workers", "unknown key", "no image", "unknown volume"],
)
def test_what_the_file_gets_wrong_is_named(
    break_it: dict[str, object],
    said: str,
    run: Run,
    account: Account,
    file: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | break_it))
    monkeypatch.setattr("sys.argv", ["deploy", "plan", "--file", str(file)])

    assert deploy.main() == 1
    assert said in capsys.readouterr().err


def test_a_wrong_key_is_one_line_and_a_missing_one_too(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNPOD_API_KEY", "wrong")
    assert run("status") == 1
    assert "401" in capsys.readouterr().err
    monkeypatch.delenv("RUNPOD_API_KEY")
    assert run("status") == 1
    assert "set RUNPOD_API_KEY" in capsys.readouterr().err


def test_what_runpod_writes_differently_is_no_difference() -> None:
    wanted = {"dataCenterIds": ["EU-RO-1", "EU-CZ-1"], "networkVolumeId": None, "env": {}, "flashboot": True}
    actual = {"dataCenterIds": "EU-CZ-1,EU-RO-1", "networkVolumeId": "", "env": None}

    assert differences(wanted, actual) == []
