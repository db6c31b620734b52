"""Every profile's command line is accepted by the parser of the pinned SGLang."""

import json
import os
import subprocess
from pathlib import Path

import yaml

from handler.engine.sglang import PROFILES, choose_profile, smaller
from tests.engine.conftest import ROOT, SGLANG_PYTHON, SHIM

PARSE = """
import argparse, json, sys
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser(allow_abbrev=False)
ServerArgs.add_cli_args(parser)
for argv in json.load(sys.stdin):
    parsed = parser.parse_args(argv)
    print(parsed.mem_fraction_static, parsed.speculative_algorithm, parsed.served_model_name)
"""


def test_all_profiles_parse() -> None:
    data = yaml.safe_load(PROFILES.read_text())
    names = [f"{a['name']}/{m['name']}" for a in data["architectures"] for m in data["memory"]]
    profiles = [choose_profile(name + variant, [], "glm-ocr") for name in (*names, "cpu") for variant in ("", "+nextn")]
    profiles += [smaller(profile) for profile in profiles]
    commands = [profile.argv("python3", Path("/models/glm-ocr"), 5002, "")[2:] for profile in profiles]
    done = subprocess.run(
        [str(SGLANG_PYTHON), "-c", PARSE],
        input=json.dumps(commands),
        env={**os.environ, "SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": str(SHIM)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == len(commands)
    print(f"{len(commands)} command lines accepted")
