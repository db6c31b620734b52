"""`make demo`: two documents through the real job path, with no GPU and nothing installed beside Python.

Starts the RunPod emulator, which starts the worker through `start.sh` as the container would, and runs the client
against it. Whatever it started has ended when it ends, also after Ctrl-C.
"""

import asyncio
import os
import signal
import sys
import tempfile
from pathlib import Path

from emulator import Emulator
from emulator.autoscaler import Scaling
from emulator.processes import WorkerCommand

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("examples/agreement.pdf", "examples/scan.pdf")
OUT = "out"
BOOT_TIMEOUT_S = 180


async def demo(documents: list[str]) -> int:
    """Run the demo; the client's exit status."""
    with tempfile.TemporaryDirectory(prefix="glmocr-demo-") as folder:
        logs = Path(folder) / "logs"
        worker = WorkerCommand([str(ROOT / "start.sh")], env=_worker_settings(Path(folder)), log_dir=logs)
        async with Emulator(command=worker, scaling=Scaling(min_workers=1)) as emulator:
            print("starting the worker (embedded engine, about 10 s) ...", flush=True)
            try:
                await emulator.wait_ready(BOOT_TIMEOUT_S)
            except (TimeoutError, RuntimeError) as error:
                print(f"the worker did not start: {error}", *_last_lines(logs), sep="\n", file=sys.stderr)
                return 1
            return await run_client(emulator, documents, Path(folder) / "state", OUT)


def _worker_settings(folder: Path) -> dict[str, str]:
    volume = folder / "volume"
    volume.mkdir()
    return {
        "GLMOCR_ENGINE": os.environ.get("GLMOCR_ENGINE", "rapidocr"),
        "HANDLER_PYTHON": sys.executable,
        "RUNPOD_VOLUME_PATH": str(volume),
    }


async def run_client(emulator: Emulator, documents: list[str], state: Path, out: str) -> int:
    """The client as anyone would call it, in a process of its own; what it remembers ends with the demo."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "client"),
        "RUNPOD_API_URL": emulator.base_url,
        "RUNPOD_ENDPOINT_ID": emulator.endpoint,
        "RUNPOD_API_KEY": emulator.api_key,
        "GLMOCR_STATE_DIR": str(state),
    }
    client = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "glmocr_runpod", "parse", *documents, "-o", out, env=environment, cwd=ROOT
    )
    try:
        return await client.wait()
    finally:
        if client.returncode is None:
            client.terminate()
            await client.wait()


def _last_lines(logs: Path) -> list[str]:
    return [line for path in sorted(logs.glob("*")) for line in path.read_text().splitlines()[-15:]]


async def _until_interrupted(documents: list[str]) -> int:
    """Ctrl-C and SIGTERM end the demo in good order instead of at once."""
    task = asyncio.create_task(demo(documents))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        print("interrupted; everything this demo started has ended", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(asyncio.run(_until_interrupted(sys.argv[1:] or list(DOCUMENTS))))
