"""The boot, top to bottom. Anything wrong ends the process with exit code 1 and one clear line."""

import gc
import signal
import sys
from types import FrameType

from handler import __version__
from handler.boot import BootReport
from handler.debug import JobLines
from handler.engine.launch import start_engine
from handler.errors import BootError
from handler.job_folder import sweep
from handler.logs import configure
from handler.settings import Settings, secret_values


def main() -> int:
    """Boot and serve until told to stop. Returns the exit status."""
    signal.signal(signal.SIGTERM, _leave_boot)
    lines = JobLines()
    try:
        settings = Settings.from_env()
        configure(settings.log_level, lines, secrets=secret_values())
        report = BootReport(settings)
        sweep()
        with start_engine(settings) as starting:
            # The SDK, the bucket's client and the renderer take their time to import: the engine starts meanwhile.
            from handler.patches import registry

            report.found({"sdk_patches": registry.as_json(registry.apply_to_sdk())})

            from handler.chain import open_chain
            from handler.serving import serve

            with open_chain(settings, report, starting) as chain:
                report.log()
                lines.boot_done()
                serve(settings, chain, report, lines)
    except BootError as error:
        sys.stderr.write(f"glmocr-worker {__version__} cannot start: {error.message}\n")
        return 1
    return 0


def _leave_boot(number: int, frame: FrameType | None) -> None:
    """SIGTERM before the SDK takes it over: no failure, and unwinding ends the engine too."""
    raise SystemExit(0)


if __name__ == "__main__":
    try:
        sys.exit(main())
    finally:
        gc.freeze()  # else the interpreter's last collection delays the exit, by seconds on a busy host
