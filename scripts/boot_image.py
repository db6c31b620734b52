"""One document through a container, as RunPod would run it: called by scripts/boot-image."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from emulator import Emulator
from emulator.autoscaler import Scaling
from emulator.processes import WorkerCommand
from scripts.demo import run_client

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = "examples/agreement.pdf"
BOOT_TIMEOUT_S = 600


async def boot_and_read(runner: str, command: str, out: str) -> int:
    """The client's exit status for one document; 1 where the container does not come up."""
    with tempfile.TemporaryDirectory(prefix="glmocr-boot-") as folder:
        logs = Path(folder) / "logs"
        worker = WorkerCommand(
            [str(ROOT / "scripts" / "container-worker"), runner, command],
            env={"GLMOCR_ENGINE": "rapidocr"},
            log_dir=logs,
        )
        started = time.monotonic()
        async with Emulator(command=worker, scaling=Scaling(min_workers=1)) as emulator:
            try:
                await emulator.wait_ready(BOOT_TIMEOUT_S)
                print(f"container ready after {time.monotonic() - started:.1f} s", flush=True)
                return await run_client(emulator, [DOCUMENT], Path(folder) / "state", out)
            except (TimeoutError, RuntimeError) as error:
                print(f"the container did not start: {error}", file=sys.stderr)
                return 1
            finally:
                for log in sorted(logs.glob("*")):
                    print(*log.read_text(errors="replace").splitlines()[-30:], sep="\n", file=sys.stderr)


def main() -> int:
    """Exit status: 0 when the document came back read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runner", required=True, help="the program that runs a container, before its --env flags")
    parser.add_argument("--command", required=True, help="image or container, and what follows it")
    parser.add_argument("--out", default="out/image", help="where the result goes (default: %(default)s)")
    options = parser.parse_args()
    return asyncio.run(boot_and_read(options.runner, options.command, options.out))


if __name__ == "__main__":
    sys.exit(main())
