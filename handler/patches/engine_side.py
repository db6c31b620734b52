"""The patches of SGLang's processes. Standard library only; says on stderr what it did, which the worker logs."""

import sys

from handler.patches import torch_rendezvous
from handler.patches.patch import PatchFailed, run

ENGINE_PATCHES = (torch_rendezvous.PATCH,)


def apply_in_engine() -> None:
    """Apply them in this process, or end it."""
    for patch in ENGINE_PATCHES:
        try:
            report = run(patch)
        except PatchFailed as error:
            sys.exit(f"engine: {error}")
        sys.stderr.write(f"patch {report.name} ({report.target} {report.version}): {report.outcome}\n")
