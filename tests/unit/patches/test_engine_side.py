import json
import subprocess
import sys
from pathlib import Path

LAUNCHER = Path(__file__).parents[3] / "handler" / "engine" / "sglang_launcher.py"

SERVER = """
import json, multiprocessing, os, sys
def tell(queue):
    queue.put([os.environ.get("MASTER_ADDR"), os.environ["GLOO_SOCKET_IFNAME"]])
def run_server(arguments):
    from sglang import late
    os.environ.update(MASTER_ADDR="10.0.0.1", GLOO_SOCKET_IFNAME="eth0")  # what a child would inherit
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=tell, args=(queue,))
    child.start()
    print(json.dumps({"arguments": arguments, "child": queue.get(timeout=30), "before": BEFORE, "path": sys.path[0]}))
    child.join()
BEFORE = sorted({name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names))
"""
"""Takes sglang.launch_server's place: spawns a child as SGLang does, and says what was imported before it."""


def stand_in(folder: Path) -> None:
    package = folder / "sglang"
    (package / "srt").mkdir(parents=True)
    for name, text in {
        "__init__.py": "",
        "late.py": "",
        "launch_server.py": SERVER,
        "srt/__init__.py": "",
        "srt/server_args.py": "def prepare_server_args(arguments):\n    return arguments\n",
        "srt/utils.py": "def kill_process_tree(pid, include_parent):\n    pass\n",
    }.items():
        (package / name).write_text(text)


def test_patches_reach_spawned_children_and_nothing_foreign_comes_before_sglang(tmp_path: Path) -> None:
    stand_in(tmp_path)
    done = subprocess.run(
        [sys.executable, "-S", str(LAUNCHER), "--model-path", "m"],
        env={"PYTHONPATH": str(tmp_path), "ENGINE_API_KEY": "key", "WORLD_SIZE": "2", "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["arguments"] == ["--model-path", "m", "--api-key", "key"]
    assert said["child"] == [None, "lo"]
    assert set(said["before"]) - {"__main__", "__mp_main__"} <= {"handler", "sglang"}
    assert said["path"] != str(LAUNCHER.parent)
    assert done.stderr.count("patch torch_rendezvous") == 2
