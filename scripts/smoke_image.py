"""The image's last build step: python -m scripts.smoke_image [--without CHECK,...]

Runs in the worker's Python inside the image and fails the build on what would otherwise fail at a boot: a module that
cannot be imported, a patch without effect on the installed packages, dependencies at odds, a command line that the
installed SGLang does not accept.
"""

import argparse
import importlib
import itertools
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import yaml

import handler
from handler.errors import WorkerError
from handler.patches.patch import PatchReport

ALLOWED = Path("requirements/pip-check-allowed.txt")
NOT_OURS = ("handler.engine.sglang_launcher", "handler.__main__")
"""The launcher patches the Python that imports it, and belongs to SGLang's; importing __main__ must not boot."""
BASE_PYTHON = "python3"
SGLANG_IMPORT = """
import distro, sglang
try:
    import sglang.srt.entrypoints.http_server
except ImportError as error:
    if "libcuda.so.1" not in str(error):
        raise
    print("sglang's server imports up to the GPU driver, which a build does not have")
"""
SGLANG_ARGV = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
for argv in json.load(sys.stdin):
    parser.parse_args(argv)
    print("accepted:", *argv)
"""


class SmokeError(Exception):
    """Something in this image would fail at a boot."""


def check_imports() -> None:
    """Every module of the worker can be imported, RunPod's SDK behind its patches."""
    from handler.patches.registry import apply_to_sdk

    _show(apply_to_sdk())
    for module in pkgutil.walk_packages(handler.__path__, "handler."):
        if module.name not in NOT_OURS:
            importlib.import_module(module.name)


def check_dependencies() -> None:
    """`pip check` has nothing to say that is not in the allow-list."""
    allowed = [line for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")]
    pip = [BASE_PYTHON, "-m", "pip", "--python", sys.executable, "check"]
    said = subprocess.run(pip, capture_output=True, text=True, check=False).stdout.splitlines()
    complaints = [line for line in said if line and not line.startswith("No broken requirements")]
    unknown = [line for line in complaints if not any(re.search(pattern, line) for pattern in allowed)]
    if unknown:
        raise SmokeError("pip check: " + "; ".join(unknown))


def check_patches() -> None:
    """The worker's patches hold on the packages installed here."""
    from handler.patches.registry import apply_patches

    _show(apply_patches(allow_untested=False))


def _show(reports: Iterable[PatchReport]) -> None:
    for report in reports:
        print(f"patch {report.name} ({report.target} {report.version}): {report.outcome}")


def _in_base_python(code: str, given: str = "") -> None:
    done = subprocess.run([BASE_PYTHON, "-c", code], input=given, capture_output=True, text=True, check=False)
    print(done.stdout, end="")
    if done.returncode:
        raise SmokeError(done.stderr.strip()[-2000:])


def check_sglang() -> None:
    """SGLang's server can be imported in its own Python, as far as a machine without a GPU allows."""
    _in_base_python(SGLANG_IMPORT)


def _command_lines() -> Iterator[list[str]]:
    from handler.engine.sglang import PROFILES, choose_profile

    data = yaml.safe_load(PROFILES.read_text(encoding="utf-8"))
    for architecture, memory in itertools.product(data["architectures"], data["memory"]):
        profile = choose_profile(f"{architecture['name']}/{memory['name']}+nextn", (), "glm-ocr")
        yield list(profile.argv(BASE_PYTHON, Path("/models"), 5002, "")[2:])


def check_arguments() -> None:
    """The installed SGLang accepts the command line of every profile."""
    _in_base_python(SGLANG_ARGV, json.dumps(list(_command_lines())))


CHECKS: dict[str, Callable[[], None]] = {
    "imports": check_imports,
    "dependencies": check_dependencies,
    "patches": check_patches,
    "sglang": check_sglang,
    "arguments": check_arguments,
}


def main() -> int:
    """Exit status 1 at the first check that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--without", default="", help=f"checks to leave out, of {', '.join(CHECKS)}")
    without = set(filter(None, parser.parse_args().without.split(",")))
    if unknown := without - CHECKS.keys():
        parser.error(f"no such check: {', '.join(sorted(unknown))}")
    for name, check in CHECKS.items():
        if name in without:
            print(f"smoke: {name}: LEFT OUT")
            continue
        try:
            check()
        except (SmokeError, ImportError, WorkerError) as error:
            print(f"smoke: {name}: {error}", file=sys.stderr)
            return 1
        print(f"smoke: {name}: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
