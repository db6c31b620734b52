import pytest

from handler.patches.patch import Outcome, Patch, PatchFailed, PatchReport, installed_version, run


def patch_of(state: list[str], *, works: bool = True) -> Patch:
    return Patch(
        name="example",
        target="pytest",
        why="an example goes wrong",
        needed=lambda: "broken" in state,
        apply=lambda: state.remove("broken") if works else None,
        verify=lambda: "broken" not in state,
    )


def test_a_needed_patch_is_applied_and_reported() -> None:
    state = ["broken"]
    assert run(patch_of(state)) == PatchReport("example", "pytest", pytest.__version__, Outcome.APPLIED)
    assert state == []
    assert run(patch_of(state)).outcome is Outcome.NOT_NEEDED


def test_a_patch_without_effect_fails_by_name_and_reason() -> None:
    with pytest.raises(PatchFailed, match=r"patch example \(an example goes wrong\) has no effect"):
        run(patch_of(["broken"], works=False))


def test_what_is_not_installed_has_no_version() -> None:
    assert installed_version("surely-not-installed") is None
