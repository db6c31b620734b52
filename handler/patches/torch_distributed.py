"""Lets transformers run on a torch that was built without `torch.distributed` (ARM and Jetson builds).

Such builds have the module but not its functions, and transformers asks `is_initialized()` while it loads a model.
No glmocr version needs a process group: one process is all there ever is.
"""

from typing import Any

from handler.patches.patch import Patch

SINGLE_PROCESS: dict[str, Any] = {
    "is_available": lambda: False,
    "is_initialized": lambda: False,
    "get_rank": lambda group=None: 0,
    "get_world_size": lambda group=None: 1,
}


def needed() -> bool:
    """Whether this torch lacks one of the functions."""
    import torch

    distributed = getattr(torch, "distributed", None)
    return distributed is None or any(not hasattr(distributed, name) for name in SINGLE_PROCESS)


def apply() -> None:
    """Give the answers of a single process where there are none."""
    import torch

    for name, answer in SINGLE_PROCESS.items():
        if not hasattr(torch.distributed, name):
            setattr(torch.distributed, name, answer)


def verify() -> bool:
    """Whether nobody has joined a process group, and asking so works."""
    import torch

    return not torch.distributed.is_initialized()


PATCH = Patch(
    name="torch_distributed",
    target="torch",
    why="transformers asks torch.distributed.is_initialized(), which some builds lack",
    needed=needed,
    apply=apply,
    verify=verify,
)
