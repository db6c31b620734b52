"""SGLang's server under this worker: what runs in SGLang's own Python.

Nothing but the standard library (and the patches, which keep to it) is imported before SGLang itself. SGLang starts
its scheduler and detokenizer with `spawn`, which imports this file again in each of them; so the patches are applied
at import, not in `main`.
"""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
KEY_VARIABLE = "ENGINE_API_KEY"

# Python put this folder in front of everything: `server` or `client` must not mean ours inside SGLang.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
sys.path.append(str(ROOT))

from handler.patches.engine_side import apply_in_engine  # noqa: E402 - needs the path above

apply_in_engine()


def main() -> None:
    """Serve with the given flags, and the key from the environment, where `ps` does not show it."""
    key = os.environ.get(KEY_VARIABLE)
    arguments = [*sys.argv[1:], *(["--api-key", key] if key else [])]

    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args
    from sglang.srt.utils import kill_process_tree

    try:
        run_server(prepare_server_args(arguments))
    finally:
        kill_process_tree(os.getpid(), include_parent=False)


if __name__ == "__main__":
    main()
