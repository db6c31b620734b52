"""The worker's patches, in order, and when a boot may go on."""

import logging
from collections.abc import Iterable
from dataclasses import asdict

from handler.errors import PatchError
from handler.layout.names import LayoutName
from handler.patches import (
    glmocr_connect,
    glmocr_id2label,
    glmocr_layout_errors,
    glmocr_load_report,
    pillow_pixels,
    runpod_cpu_info,
    torch_distributed,
    torch_rendezvous,
)
from handler.patches.patch import Patch, PatchFailed, PatchReport, installed_version, run
from handler.schema import JsonValue
from handler.settings import Settings

log = logging.getLogger(__name__)

SDK_PATCHES = (runpod_cpu_info.PATCH,)
"""For every worker, before RunPod's SDK is imported."""
PATCHES = (
    torch_rendezvous.PATCH,
    torch_distributed.PATCH,
    glmocr_connect.PATCH,
    glmocr_id2label.PATCH,
    glmocr_load_report.PATCH,
    glmocr_layout_errors.PATCH,
    pillow_pixels.PATCH,
)
"""For a worker that loads PP-DocLayoutV3 through glmocr; the others import neither glmocr nor torch."""
TESTED_GLMOCR = ("0.1.4", "0.1.5")
"""`make test-engine` applies every patch to these wheels."""

BROKEN_TARGET = (ImportError, AttributeError, TypeError, OSError, RuntimeError)
"""What a target raises that is not what it was: other names, other signatures, a library that does not load, torch's
own words about a torchvision of another version."""


def apply_patches(allow_untested: bool, patches: Iterable[Patch] = PATCHES) -> tuple[PatchReport, ...]:
    """Apply and verify all. Raises `PatchError` for an untested glmocr, a missing target, or a patch without effect."""
    refuse_untested(installed_version("glmocr"), allow_untested)
    tested = " or ".join(TESTED_GLMOCR)
    return _apply(patches, f"install a tested version (glmocr {tested}) over the image's own torch and transformers")


def apply_to_sdk() -> tuple[PatchReport, ...]:
    """Apply and verify what must be in place before the SDK is imported. Raises `PatchError`."""
    return _apply(SDK_PATCHES, "install what requirements/image.txt names")


def _apply(patches: Iterable[Patch], advice: str) -> tuple[PatchReport, ...]:
    reports = []
    for patch in patches:
        try:
            reports.append(run(patch))
        except PatchFailed as error:
            raise PatchError(f"{error}; {advice}") from error
        except BROKEN_TARGET as error:
            version = installed_version(patch.target)
            said = f"{type(error).__name__}: {error}"
            raise PatchError(f"patch {patch.name} of {patch.target} {version} failed: {said}; {advice}") from error
        log.info("patch %s (%s %s): %s", patch.name, patch.target, reports[-1].version, reports[-1].outcome)
    return tuple(reports)


def apply_for(settings: Settings) -> tuple[PatchReport, ...]:
    """The patches this boot needs: those of PP-DocLayoutV3 where it is the layout model, else none."""
    if settings.layout is not LayoutName.PP_DOCLAYOUT_V3:
        return ()
    return apply_patches(settings.glmocr_allow_untested)


def as_json(reports: Iterable[PatchReport]) -> list[JsonValue]:
    """For `debug.boot.patches`."""
    return [asdict(report) for report in reports]


def refuse_untested(version: str | None, allow_untested: bool) -> None:
    """Raises `PatchError` unless glmocr's version was tested or the operator allows any."""
    if version is None:
        raise PatchError("glmocr is not installed; it carries the layout model's code")
    if version in TESTED_GLMOCR:
        return
    tested = " and ".join(TESTED_GLMOCR)
    if not allow_untested:
        raise PatchError(f"glmocr {version} is not one of the tested versions {tested}; GLMOCR_ALLOW_UNTESTED=1 boots")
    log.warning("glmocr %s was never tested with these patches, only %s were", version, tested)
