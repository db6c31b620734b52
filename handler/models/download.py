"""Fetch a model's files from the hub and publish them as a whole: staged, verified, renamed.

Only the manifest's files at the pinned revision are fetched. The hub library does the transfer; its cache and its
locks are not used, because they are not to be trusted on network file systems.
"""

import io
import logging
import multiprocessing
import shutil
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from handler.errors import ModelError
from handler.logs import LogLevel, configure
from handler.models.lease import LIFETIME_S, Lease, hold
from handler.models.manifest import ModelEntry, ModelFile
from handler.models.verify import Verdict, check, check_file, find_problems, write_marker
from handler.supervisor import die_with_parent

logger = logging.getLogger(__name__)

REPORT_S = 10.0
ASIDE = ".bad-"
"""How the directory is called that a whole one is about to replace."""
SPARE_BYTES = 256 * 1024 * 1024


class _PartFile(io.FileIO):
    """A file being fetched, that takes no byte once its lease is lost and tells how far it is."""

    def __init__(self, path: Path, lease: Lease, total: int | None) -> None:
        super().__init__(path, "a+")
        self._lease = lease
        self._total = total
        self._next_report = time.monotonic() + REPORT_S

    def write(self, data: "bytes | bytearray | memoryview[int]", /) -> int:  # type: ignore[override]
        """Append."""
        self._lease.check()
        if time.monotonic() > self._next_report:
            self._next_report = time.monotonic() + REPORT_S
            logger.info("%s: %d of %s bytes", self.name, self.tell(), self._total or "unknown")
        view = memoryview(data)
        written = 0
        while written < len(view):
            written += super().write(view[written:]) or 0
        return written


def _transfer(entry: ModelEntry, file: ModelFile, part: Path, lease: Lease) -> None:
    from httpx import HTTPError
    from huggingface_hub import constants, hf_hub_url
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers

    # The worker runs with the hub offline, and the library read that at import.
    constants.HF_HUB_OFFLINE = False
    held = part.stat().st_size if part.exists() and file.size is not None else 0
    if file.size is None or held > file.size:
        part.unlink(missing_ok=True)
        held = 0
    url = hf_hub_url(entry.repo, file.path, revision=entry.revision)
    with _PartFile(part, lease, file.size) as stream:
        try:
            http_get(url, stream, resume_size=held, headers=build_hf_headers(), expected_size=file.size)
        except HTTPError as error:
            said = " ".join(str(error).split())
            raise ModelError(f"{file.path} of {entry.repo} could not be fetched: {said}") from error


def _fetch_file(entry: ModelEntry, file: ModelFile, staging: Path, lease: Lease) -> None:
    """Fetch one file, resuming what an earlier try left. A wrong hash is fetched once more from the start."""
    target = staging / file.path
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    for last_try in (False, True):
        if not target.exists():
            _transfer(entry, file, part, lease)
            part.rename(target)
        try:
            check_file(staging, file)
        except ModelError as error:
            target.unlink(missing_ok=True)
            if last_try:
                raise
            logger.warning("%s of %s: %s; fetching it again", file.path, entry.repo, error.message)
        else:
            return


def _publish(staging: Path, destination: Path, verdict: Verdict, lease: Lease) -> None:
    write_marker(staging, verdict)
    lease.confirm()
    aside = destination.with_name(f"{ASIDE}{uuid.uuid4().hex}")
    if destination.exists():
        destination.rename(aside)
    staging.rename(destination)
    shutil.rmtree(aside, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove what a crash between two renames left; only under the lock."""
    for aside in parent.glob(f"{ASIDE}*"):
        shutil.rmtree(aside, ignore_errors=True)


def _check_space(entry: ModelEntry, staging: Path) -> None:
    staged = sum(path.stat().st_size for path in staging.rglob("*") if path.is_file())
    free, needed = shutil.disk_usage(staging).free, max(0, entry.size - staged) + SPARE_BYTES
    if free < needed:
        raise ModelError(f"{staging.parent} has {free} bytes free, {needed} are needed for {entry.repo}")


def obtain(entry: ModelEntry, destination: Path, *, lifetime_s: int = LIFETIME_S) -> None:
    """Make `destination` hold the model, downloading it unless another worker did so meanwhile.

    `lifetime_s` is after how many seconds without a sign of life a downloading worker is presumed dead.
    Raises `ModelError`, or `OSError` where the disk refuses.
    """
    staging = destination.with_name(f".staging-{destination.name}")
    with hold(destination.with_name(f".lock-{destination.name}"), lifetime_s=lifetime_s) as lease:
        if not find_problems(destination, entry):
            return
        started = time.monotonic()
        staging.mkdir(parents=True, exist_ok=True)
        _sweep(destination.parent)
        _check_space(entry, staging)
        for file in entry.files:
            _fetch_file(entry, file, staging, lease)
        verdict = check(staging, entry)
        if not verdict.ok:
            raise ModelError(f"{entry.repo}: {'; '.join(verdict.problems)}")
        _publish(staging, destination, verdict, lease)
        logger.info("%s downloaded to %s in %.1f s", entry.repo, destination, time.monotonic() - started)


def _become_child() -> None:
    die_with_parent()
    configure(LogLevel.INFO)


def obtain_in_child(entry: ModelEntry, destination: Path) -> None:
    """`obtain` in a process of its own, which dies with this one. Raises `ModelError`."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context, initializer=_become_child) as pool:
        try:
            pool.submit(obtain, entry, destination).result()
        except (OSError, BrokenProcessPool) as error:
            raise ModelError(f"{entry.repo} could not be downloaded to {destination}: {error}") from error
