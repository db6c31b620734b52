"""`python -m emulator`: serve until SIGINT or SIGTERM, then stop every worker."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from typing import TextIO

from emulator.autoscaler import ScalerType, Scaling
from emulator.processes import WorkerCommand
from emulator.server import Emulator


def main() -> int:
    """Parse, serve, return the exit status."""
    return asyncio.run(_serve(_parser().parse_args()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emulator", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one (default)")
    parser.add_argument("--endpoint", default="local", help="endpoint id (default: local)")
    parser.add_argument("--api-key", help="default: a random one, printed")
    parser.add_argument("--workers", type=int, default=0, help="workers kept running")
    parser.add_argument("--max-workers", type=int, help="scale up to so many (default: as many as --workers)")
    parser.add_argument("--scaler", type=ScalerType, choices=list(ScalerType), default=ScalerType.QUEUE_DELAY)
    parser.add_argument("--scaler-value", type=float, default=4.0, help="seconds in queue, or jobs per worker")
    parser.add_argument("--idle-timeout", type=float, default=5.0, help="seconds before an extra worker is stopped")
    parser.add_argument("--log-dir", type=Path, help="one log file per worker instead of this terminal")
    parser.add_argument("command", nargs="*", metavar="-- COMMAND", help="how to start one worker")
    return parser


async def _serve(options: argparse.Namespace) -> int:
    command = WorkerCommand(options.command, log_dir=options.log_dir) if options.command else None
    scaling = Scaling(
        min_workers=options.workers,
        max_workers=max(options.workers, options.max_workers or 0),
        scaler=options.scaler,
        scaler_value=options.scaler_value,
        idle_timeout_s=options.idle_timeout,
    )
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with Emulator(
        endpoint=options.endpoint,
        api_key=options.api_key,
        host=options.host,
        port=options.port,
        command=command,
        scaling=scaling,
    ) as emulator:
        _say(f"emulator ready url={emulator.base_url} endpoint={emulator.endpoint} api_key={emulator.api_key}")
        return await _until(stopped, emulator)


async def _until(stopped: asyncio.Event, emulator: Emulator) -> int:
    stop = asyncio.create_task(stopped.wait())
    giving_up = asyncio.create_task(emulator.workers_failed())
    await asyncio.wait({stop, giving_up}, return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if giving_up.done():
        _say(f"giving up: {giving_up.result()}", sys.stderr)
        return 1
    giving_up.cancel()
    return 0


def _say(line: str, stream: TextIO = sys.stdout) -> None:
    stream.write(line + "\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
