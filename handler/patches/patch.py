"""What a patch is, and how one is run. Standard library only: SGLang's own Python imports this, too."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib import metadata


class Outcome(StrEnum):
    """What became of a patch."""

    APPLIED = "applied"
    NOT_NEEDED = "not needed"


class PatchFailed(Exception):
    """A patch was applied and its effect cannot be seen."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One change to somebody else's code. `needed`, `apply` and `verify` import their target themselves."""

    name: str
    target: str
    """The distribution whose version counts."""
    why: str
    """What goes wrong without it, and where that is known from."""
    needed: Callable[[], bool]
    apply: Callable[[], None]
    verify: Callable[[], bool]
    """Whether the unwanted behaviour is gone, asked also where the patch was not needed."""


@dataclass(frozen=True, slots=True)
class PatchReport:
    """One line of `debug.patches`."""

    name: str
    target: str
    version: str
    outcome: Outcome


def installed_version(distribution: str) -> str | None:
    """None where it is not installed."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def run(patch: Patch) -> PatchReport:
    """Apply one patch if it is needed, and verify. Raises `PatchFailed`."""
    outcome = Outcome.NOT_NEEDED
    if patch.needed():
        patch.apply()
        outcome = Outcome.APPLIED
    if not patch.verify():
        raise PatchFailed(f"patch {patch.name} ({patch.why}) has no effect: {outcome}")
    return PatchReport(patch.name, patch.target, installed_version(patch.target) or "missing", outcome)
