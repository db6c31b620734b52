"""The SDK asks for the processor's name while it is imported, for a debug output that nobody switches on.

`cpuinfo.get_cpu_info` starts another Python for it, which times the clock for a second: 1.3 to 2 s of every cold start
(runpod 1.12.0, py-cpuinfo 9.0.0). The SDK copes with an answer that has no name in it.
"""

from importlib.util import find_spec

from handler.patches.patch import Patch


def unknown() -> dict[str, str]:
    """What the SDK is told about the processor."""
    return {}


def needed() -> bool:
    """Whether the package is there and would be asked."""
    if find_spec("cpuinfo") is None:
        return False
    import cpuinfo

    return cpuinfo.get_cpu_info is not unknown


def apply() -> None:
    """Answer without looking."""
    import cpuinfo

    cpuinfo.get_cpu_info = unknown


def verify() -> bool:
    """Whether asking costs nothing now."""
    return not needed()


PATCH = Patch(
    name="runpod_cpu_info",
    target="py-cpuinfo",
    why="importing the SDK would measure the processor for more than a second",
    needed=needed,
    apply=apply,
    verify=verify,
)
