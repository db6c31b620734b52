import re
import subprocess

import pytest

from scripts import smoke_image


def test_every_profile_has_a_command_line_without_our_python_in_it() -> None:
    lines = list(smoke_image._command_lines())

    assert len(lines) > 20
    for line in lines:
        assert line[0] == "--model-path"
        assert "--speculative-algorithm" in line


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ("No broken requirements found.\n", None),
        ("rapidocr 3.10.0 requires opencv-python, which is not installed.\n", None),
        ("aiohttp 3.1 has requirement yarl<2, but you have yarl 3.0.\n", "yarl"),
        ("numpy 2 requires opencv-python, which is not installed.\n", "numpy"),
    ],
)
def test_only_known_complaints_of_pip_pass(said: str, complaint: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        smoke_image.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, stdout=said, stderr="")
    )
    if complaint is None:
        smoke_image.check_dependencies()
    else:
        with pytest.raises(smoke_image.SmokeError, match=complaint):
            smoke_image.check_dependencies()


def test_what_is_left_out_is_said_and_an_unknown_check_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(smoke_image, "CHECKS", {"imports": lambda: None, "sglang": lambda: None})
    monkeypatch.setattr("sys.argv", ["smoke_image", "--without", "sglang"])
    assert smoke_image.main() == 0
    assert re.search(r"imports: passed\n.*sglang: LEFT OUT", capsys.readouterr().out)
    monkeypatch.setattr("sys.argv", ["smoke_image", "--without", "nothing"])
    with pytest.raises(SystemExit):
        smoke_image.main()


def test_a_failed_check_fails_the_build(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise smoke_image.SmokeError("no effect")

    monkeypatch.setattr(smoke_image, "CHECKS", {"patches": broken})
    monkeypatch.setattr("sys.argv", ["smoke_image"])
    assert smoke_image.main() == 1
    assert "smoke: patches: no effect" in capsys.readouterr().err
