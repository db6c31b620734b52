"""The workflows do what people do: the same targets and scripts; pinned, timed, with no permission by default."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40}$")
VERSION_BESIDE_PIN = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$")
SHELL_GLUE = re.compile(r"^(for |done|\[\[|tee\b|scripts/[\w-]+|make )")
WRITES = {
    ("image.yml", "build"): {"packages"},
    ("image.yml", "attest"): {"id-token", "attestations"},
    ("image.yml", "tag"): {"packages"},
    ("release.yml", "image"): {"packages", "id-token", "attestations"},
    ("release.yml", "publish"): {"contents"},
}


def load(path: Path) -> dict[str, Any]:
    # `on` is a boolean in YAML 1.1.
    text = re.sub(r"^on:", '"on":', path.read_text(), flags=re.MULTILINE)
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def jobs() -> list[tuple[str, str, dict[str, Any]]]:
    return [(path.name, name, job) for path in WORKFLOWS for name, job in load(path)["jobs"].items()]


def steps() -> list[tuple[str, dict[str, Any]]]:
    return [(f"{file} {name}", step) for file, name, job in jobs() for step in job.get("steps", [])]


def commands() -> list[tuple[str, str]]:
    return [(where, line.strip()) for where, step in steps() for line in step.get("run", "").splitlines()]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_starts_from_nothing_and_never_piles_up(path: Path) -> None:
    workflow = load(path)

    assert workflow["permissions"] == {}
    assert workflow["concurrency"]["group"]
    assert workflow["defaults"]["run"]["shell"] == "bash"


def test_every_job_has_an_end_and_says_what_it_may() -> None:
    for file, name, job in jobs():
        granted = {scope for scope, level in job["permissions"].items() if level == "write"}
        assert granted == WRITES.get((file, name), set()), f"{file} {name}"
        assert "uses" in job or job["timeout-minutes"] <= 90, f"{file} {name}"


def test_every_action_is_pinned_by_commit_with_its_version_beside_it() -> None:
    for where, step in steps():
        if "uses" in step:
            assert PINNED.match(step["uses"]), f"{where}: {step['uses']}"
    for path in WORKFLOWS:
        for line in path.read_text().splitlines():
            if "uses: " in line and "uses: ./" not in line:
                assert VERSION_BESIDE_PIN.search(line), f"{path.name}: {line}"


def test_no_checkout_leaves_its_token_behind() -> None:
    for where, step in steps():
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False, where


def test_what_runs_is_a_make_target_or_a_script_that_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for where, line in commands():
        assert SHELL_GLUE.match(line), f"{where}: {line}"
        for target in re.findall(r"^make ([a-z-]+)", line):
            assert target in targets, f"{where}: make {target}"
        for script in re.findall(r"^(scripts/[\w-]+)", line):
            assert (ROOT / script).stat().st_mode & 0o111, f"{where}: {script}"


def test_no_expression_is_pasted_into_a_shell() -> None:
    assert [line for _, line in commands() if "${{" in line] == []


def test_one_gate_needs_every_job_of_ci() -> None:
    ci = load(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]

    assert set(ci["required"]["needs"]) == set(ci) - {"required"}
    assert ci["required"]["if"] == "always()"


def test_nothing_is_pushed_from_a_pull_request() -> None:
    for path in WORKFLOWS:
        workflow = load(path)
        writes = any(WRITES.get((path.name, job)) for job in workflow["jobs"])
        assert not (writes and "pull_request" in workflow["on"]), path.name
        assert "pull_request_target" not in workflow["on"], path.name


def test_the_image_is_booted_before_it_gets_a_tag_and_built_with_every_check() -> None:
    image = load(ROOT / ".github" / "workflows" / "image.yml")["jobs"]
    build = (ROOT / "scripts" / "build-image").read_text()

    assert {"build", "boot"} <= set(image["tag"]["needs"])
    assert "--provenance=false" in build
    assert "SMOKE_WITHOUT" not in build + str(image)


def test_a_release_waits_for_an_approval_and_goes_back_on_failure() -> None:
    deploy = load(ROOT / ".github" / "workflows" / "release.yml")["jobs"]["deploy"]
    order = [step["run"].split()[1] for step in deploy["steps"] if "run" in step]

    assert deploy["environment"] == "production"
    assert order == ["deploy", "smoke-endpoint", "rollback"]
    assert "failure()" in deploy["steps"][-1]["if"]
