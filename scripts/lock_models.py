"""Confirm and complete models.manifest.yaml from the hub: scripts/lock-models [--check]

Large files carry their sha256 in the hub's index; small ones are fetched, compared with the hub's own (git) hash, and
hashed. What the hub contradicts is never overwritten: somebody has to decide. With --check nothing is written, and the
exit status is 1 while a hash is missing, unconfirmed, or not the hub's.
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from httpx import HTTPError
from huggingface_hub import HfApi, get_session, hf_hub_url
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status

from handler.errors import ModelError
from handler.models.manifest import MANIFEST_PATH, Knowledge, Manifest, ModelEntry, ModelFile, load_manifest


class Contradiction(Exception):
    """The hub serves something else than the manifest, or than its own index, says."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of one file's record."""

    model: str
    file: ModelFile
    problem: str | None = None


def _git_blob_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data), usedforsecurity=False).hexdigest()


def _small_file(entry: ModelEntry, listed: RepoFile) -> tuple[int, str]:
    response = get_session().get(
        hf_hub_url(entry.repo, listed.path, revision=entry.revision), headers=build_hf_headers(), follow_redirects=True
    )
    hf_raise_for_status(response)
    data: bytes = response.content
    if _git_blob_hash(data) != listed.blob_id:
        raise Contradiction(f"the hub served other bytes of {listed.path} than its index names")
    return len(data), hashlib.sha256(data).hexdigest()


def _confirmed(entry: ModelEntry, file: ModelFile, listed: RepoFile | None) -> ModelFile:
    if listed is None:
        raise Contradiction(f"{entry.repo} has no {file.path} at {entry.revision}")
    size, sha256 = (listed.lfs.size, listed.lfs.sha256) if listed.lfs else _small_file(entry, listed)
    if file.sha256 is not None and (file.size, file.sha256) != (size, sha256):
        raise Contradiction(f"{file.path}: manifest {file.size} {file.sha256}, hub {size} {sha256}")
    return file.model_copy(update={"size": size, "sha256": sha256, "known": Knowledge.CONFIRMED, "sources": None})


def examine(manifest: Manifest) -> Iterator[Finding]:
    """Ask the hub about every file."""
    for name, entry in manifest.models.items():
        paths = [file.path for file in entry.files]
        listed = {item.path: item for item in HfApi().get_paths_info(entry.repo, paths, revision=entry.revision)}
        for file in entry.files:
            try:
                yield Finding(name, _confirmed(entry, file, listed.get(file.path)))
            except Contradiction as error:
                yield Finding(name, file, str(error))


def written(findings: list[Finding], manifest: Manifest, old: str) -> str:
    """The manifest with what was found, under the comment it had."""
    head = "".join(line for line in old.splitlines(keepends=True) if line.startswith("#"))
    files = {name: tuple(f.file for f in findings if f.model == name) for name in manifest.models}
    models = {name: entry.model_copy(update={"files": files[name]}) for name, entry in manifest.models.items()}
    data = manifest.model_copy(update={"models": models}).model_dump(mode="json", exclude_none=True)
    return head + yaml.safe_dump(data, sort_keys=False, width=120)


def _report(findings: list[Finding], manifest: Manifest) -> bool:
    """Print a line a file; whether everything was confirmed before this run."""
    before = {(name, file.path): file for name, entry in manifest.models.items() for file in entry.files}
    for finding in findings:
        was = before[finding.model, finding.file.path].known
        print(f"{finding.model} {finding.file.path}: {finding.problem or f'{was} -> {finding.file.known}'}")
    return all(file.known is Knowledge.CONFIRMED for file in before.values())


def main() -> int:
    """Exit status: 1 if the hub contradicts, or if --check finds something that is not confirmed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--manifest", type=Path, default=MANIFEST_PATH)
    arguments = parser.parse_args()
    try:
        manifest = load_manifest(arguments.manifest)
        findings = list(examine(manifest))
    except (ModelError, HTTPError, OSError) as error:
        print("lock-models:", *str(error).split(), file=sys.stderr)
        return 1
    complete = _report(findings, manifest)
    if any(finding.problem for finding in findings):
        print("lock-models: the hub contradicts the manifest; nothing was written", file=sys.stderr)
        return 1
    if arguments.check:
        return 0 if complete else 1
    arguments.manifest.write_text(
        written(findings, manifest, arguments.manifest.read_text(encoding="utf-8")), encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
