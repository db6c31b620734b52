"""Make a directory hold a model of the manifest, downloading what is missing: scripts/fetch-model NAME --to ROOT.

The files end up in ROOT/NAME/REVISION, where the worker looks for them. Used when the image is built, and to prepare
a directory for scripts/seed-volume.
"""

import argparse
import sys
from pathlib import Path

from handler.errors import ModelError
from handler.logs import LogLevel, configure
from handler.models.download import obtain
from handler.models.manifest import MANIFEST_PATH, load_manifest
from handler.models.store import store_path


def main() -> int:
    """Exit status: 0 when the directory holds the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the model's name in the manifest")
    parser.add_argument("--to", type=Path, required=True, help="directory the models lie under")
    parser.add_argument("--manifest", type=Path, default=MANIFEST_PATH)
    arguments = parser.parse_args()
    configure(LogLevel.INFO)
    try:
        entry = load_manifest(arguments.manifest).model(arguments.name)
        obtain(entry, store_path(arguments.to, arguments.name, entry))
    except (ModelError, OSError) as error:
        print(f"fetch-model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
