"""Keeps `torch.distributed` on this machine, in the worker and in SGLang's processes.

Cluster templates set RANK, WORLD_SIZE, MASTER_ADDR and the like; whatever initialises a process group without saying
where then waits for machines that do not exist. And gloo looks its own host name up, which fails in containers whose
name does not resolve, unless it is told which interface to use.
"""

import os

from handler.patches.patch import Patch

RENDEZVOUS = (
    "RANK",
    "LOCAL_RANK",
    "GROUP_RANK",
    "NODE_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RUN_ID",
)
INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
LOOPBACK_INTERFACE = "lo"


def needed() -> bool:
    """Whether anything in the environment points beyond this machine."""
    return any(name in os.environ for name in RENDEZVOUS) or not _on_loopback()


def apply() -> None:
    """Take it out, and name the interface."""
    for name in RENDEZVOUS:
        os.environ.pop(name, None)
    for name in INTERFACES:
        os.environ[name] = LOOPBACK_INTERFACE


def verify() -> bool:
    """Whether nothing is left."""
    return not needed()


def _on_loopback() -> bool:
    return all(os.environ.get(name) == LOOPBACK_INTERFACE for name in INTERFACES)


PATCH = Patch(
    name="torch_rendezvous",
    target="torch",
    why="torch.distributed would look for other machines",
    needed=needed,
    apply=apply,
    verify=verify,
)
