"""SGLang's command line for this machine's GPUs, from `profiles.yaml`. No process is started here."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from handler.engine.gpu import Gpu
from handler.errors import GateError, SettingsError

PROFILES = Path(__file__).with_name("profiles.yaml")
LAUNCHER = Path(__file__).with_name("sglang_launcher.py")
OLDEST_CAPABILITY = (8, 0)
SHARED_MEMORY_GIB = 48
"""Assumed of a GPU that shares the memory of its machine and does not say how much that is: DGX Spark, 128 GB."""
MEMORY_WORDS = ("out of memory", "OutOfMemoryError", "Not enough memory", "CUDA_ERROR_OUT_OF_MEMORY")

Flags = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Profile:
    """Flags (without dashes; true stands for a switch) and environment under a name."""

    name: str
    flags: Flags
    env: Mapping[str, str]

    @property
    def needs_gpu(self) -> bool:
        """False for the profile of the tests."""
        return self.name != "cpu"

    def argv(self, python: str, model_dir: Path, port: int, extra: str) -> tuple[str, ...]:
        """The whole command line; `extra` comes last, and the last of two equal flags wins."""
        words = [python, str(LAUNCHER), "--model-path", str(model_dir), "--port", str(port)]
        for flag, value in self.flags.items():
            words += [f"--{flag}"] if value is True else [f"--{flag}", str(value)]
        return (*words, *shlex.split(extra))


def choose_profile(wanted: str | None, gpus: Sequence[Gpu], model: str) -> Profile:
    """The profile for these GPUs, or the one `wanted` (SGLANG_PROFILE) names.

    Raises `GateError` when no GPU can run it and `SettingsError` when no profile has that name.
    """
    data = _profiles()
    name, _, variant = (wanted or "").partition("+")
    if variant not in ("", "nextn"):
        raise SettingsError(f"SGLANG_PROFILE={wanted}: the only variant is +nextn")
    parts = [data["common"], *(_named(name, data) if name else _matching(gpus, data))]
    name = name or "/".join(part["name"] for part in reversed(parts[1:]))
    if variant:
        parts.append(data["nextn"])
    flags = {flag: value for part in parts for flag, value in part["flags"].items()}
    flags["served-model-name"] = model
    if len(gpus) > 1:
        flags["data-parallel-size"] = len(gpus)
    env = {key: value for part in parts for key, value in part.get("env", {}).items()}
    return Profile(name + (f"+{variant}" if variant else ""), flags, env)


def smaller(profile: Profile) -> Profile:
    """The one automatic step after an out-of-memory start: a smaller static fraction, graphs off."""
    step = _profiles()["smaller"]
    flags = {**profile.flags, **step["flags"]}
    if "mem-fraction-static" in flags:
        flags["mem-fraction-static"] = round(float(flags["mem-fraction-static"]) + step["mem-fraction-static"], 3)
    return replace(profile, name=f"{profile.name}, smaller", flags=flags)


def ran_out_of_memory(lines: Sequence[str]) -> bool:
    """Whether a dead engine's last lines say that memory was the reason."""
    return any(word in line for line in lines for word in MEMORY_WORDS)


@cache
def _profiles() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(PROFILES.read_text())
    return data


def _named(name: str, data: dict[str, Any]) -> list[dict[str, Any]]:
    if name == "cpu":
        return [{"name": "cpu", **data["cpu"]}]
    architecture, _, memory = name.partition("/")
    parts = [
        *(entry for entry in data["memory"] if entry["name"] == memory),
        *(entry for entry in data["architectures"] if entry["name"] == architecture),
    ]
    if len(parts) != 2:
        architectures, sizes = ([entry["name"] for entry in data[kind]] for kind in ("architectures", "memory"))
        raise SettingsError(
            f"SGLANG_PROFILE={name}: no such profile; it is one of {', '.join(architectures)}, "
            f"a slash, and one of {', '.join(sizes)}"
        )
    return parts


def _matching(gpus: Sequence[Gpu], data: dict[str, Any]) -> list[dict[str, Any]]:
    if not gpus:
        raise GateError(
            "no NVIDIA GPU is visible; give the container one, or set GLMOCR_ENGINE=rapidocr to read on the CPU"
        )
    weakest = min(gpus, key=lambda gpu: gpu.memory_total or 0)
    return [_memory(weakest, data), _architecture(weakest, data)]


def _architecture(gpu: Gpu, data: dict[str, Any]) -> dict[str, Any]:
    shown = ".".join(map(str, gpu.capability))
    if gpu.capability < OLDEST_CAPABILITY:
        raise GateError(
            f"{gpu.name} has compute capability {shown}; GLM-OCR in SGLang needs 8.0 (Ampere) or newer: "
            "choose another GPU type for the endpoint"
        )
    for entry in data["architectures"]:
        lowest, highest = map(_version, entry["capability"])
        if lowest <= gpu.capability <= highest:
            if gpu.cuda < _version(entry["cuda"]):
                raise GateError(
                    f"driver {gpu.driver} offers CUDA {gpu.cuda[0]}.{gpu.cuda[1]}, {gpu.name} needs {entry['cuda']}: "
                    "allow only newer CUDA versions for the endpoint"
                )
            entry_found: dict[str, Any] = entry
            return entry_found
    raise GateError(f"no profile for {gpu.name}, compute capability {shown}; name the nearest one in SGLANG_PROFILE")


def _memory(gpu: Gpu, data: dict[str, Any]) -> dict[str, Any]:
    gib = gpu.memory_total / 1024 if gpu.memory_total else SHARED_MEMORY_GIB
    fitting = [entry for entry in data["memory"] if entry["gib"] <= gib]
    if not fitting:
        raise GateError(f"{gpu.name} has {gib:.1f} GiB; GLM-OCR with its layout model needs {data['memory'][0]['gib']}")
    largest: dict[str, Any] = fitting[-1]
    return largest


def _version(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
