"""Find a directory that holds a model, in the order its manifest entry gives."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from handler.errors import ModelError
from handler.models.download import obtain_in_child
from handler.models.manifest import ModelEntry, Place, load_manifest
from handler.models.store import runpod_cache_path, store_path, volume_models
from handler.models.verify import find_problems
from handler.settings import Settings

logger = logging.getLogger(__name__)


def _candidates(name: str, entry: ModelEntry, settings: Settings) -> Iterator[tuple[Place, Path]]:
    paths = {
        Place.IMAGE: store_path(settings.models_path, name, entry),
        Place.RUNPOD_CACHE: runpod_cache_path(settings.runpod_volume_path, entry),
        Place.VOLUME: store_path(volume_models(settings.runpod_volume_path), name, entry),
    }
    return ((place, paths[place]) for place in entry.places if place in paths)


def _explicit(entry: ModelEntry, path: Path) -> Path:
    """The operator's own directory: other weights may be meant, so differences are reported, not refused."""
    if not (path / "config.json").is_file():
        raise ModelError(f"{entry.setting}={path} is not a model's directory: it has no config.json")
    problems = find_problems(path, entry)
    if problems:
        logger.warning(
            "%s=%s is not %s at %s: %s", entry.setting, path, entry.repo, entry.revision, "; ".join(problems)
        )
    return path


def _stored(name: str, entry: ModelEntry, settings: Settings) -> Path | None:
    for place, path in _candidates(name, entry, settings):
        if not path.is_dir():
            continue
        problems = find_problems(path, entry)
        if not problems:
            logger.info("%s found in place %s: %s", name, place, path)
            return path
        logger.warning("%s at %s is not used: %s", name, path, "; ".join(problems))
    return None


def _downloaded(name: str, entry: ModelEntry, settings: Settings) -> Path:
    volume = settings.runpod_volume_path
    shared = volume.is_dir() and os.access(volume, os.W_OK)
    destination = store_path(volume_models(volume) if shared else settings.models_path, name, entry)
    logger.info("%s (%.0f MB) is nowhere yet, downloading it to %s", name, entry.size / 1e6, destination)
    obtain_in_child(entry, destination)
    return destination


def resolve(model_name: str, settings: Settings) -> Path:
    """A verified directory of this model. Blocks, for minutes where it has to download.

    Raises `ModelError` where no place has it and it cannot be fetched either.
    """
    entry = load_manifest().model(model_name)
    if entry.unconfirmed:
        logger.warning("%s: nobody has confirmed the hash of %s", model_name, ", ".join(entry.unconfirmed))
    explicit: Path | None = getattr(settings, entry.setting.lower())
    if explicit is not None:
        return _explicit(entry, explicit)
    found = _stored(model_name, entry, settings)
    if found is None and Place.DOWNLOAD in entry.places:
        found = _downloaded(model_name, entry, settings)
    if found is None:
        raise ModelError(f"{model_name} is in none of its places ({', '.join(entry.places)}); set {entry.setting}")
    return found
