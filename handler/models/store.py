"""The places a model's files may lie in."""

from pathlib import Path

from handler.models.manifest import ModelEntry


def store_path(root: Path, name: str, entry: ModelEntry) -> Path:
    """Where a model lies under one of our own roots: `<root>/<name>/<revision>`."""
    return root / name / entry.revision


def volume_models(volume: Path) -> Path:
    """Where our models lie on a network volume."""
    return volume / "glmocr" / "models"


def runpod_cache_path(volume: Path, entry: ModelEntry) -> Path:
    """Where RunPod keeps a model it cached for the endpoint: the hub library's own layout."""
    folder = "models--" + entry.repo.replace("/", "--")
    return volume / "huggingface-cache" / "hub" / folder / "snapshots" / entry.revision
