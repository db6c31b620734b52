"""Writing files whole."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from glmocr_runpod.errors import OutputError


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raises `OutputError` naming `path` for what the system refuses inside."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}. {OutputError.__doc__}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` so that `path` is whole or as it was, whatever happens in between, and stays so without power."""
    path.parent.mkdir(parents=True, exist_ok=True)
    staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with staged.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # a directory cannot be opened there
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
