"""What the transport ladder may use, from the settings and from what is installed."""

from collections.abc import Callable
from dataclasses import dataclass

from glmocr_runpod.config import Config
from glmocr_runpod.protocol import RUN_BODY_LIMIT
from glmocr_runpod.shrink import Shrunk, ghostscript, shrink


@dataclass(frozen=True, slots=True)
class Kit:
    """What the ladder may use."""

    uploads: bool = False
    """Whether storage is configured that the worker reads from."""
    shrinker: Callable[[bytes, int], Shrunk] | None = None
    """None: not wanted or not there; `shrinker_missing` says which."""
    shrinker_missing: str = "GLMOCR_DOWNSAMPLE_OVERSIZED is off"
    pages_per_job: int = 0
    body_limit: int = RUN_BODY_LIMIT


def kit_from(config: Config, *, uploads: bool) -> Kit:
    """As configured."""
    program = ghostscript()
    if not config.glmocr_downsample_oversized:
        return Kit(uploads=uploads, pages_per_job=config.glmocr_pages_per_job)
    if program is None:
        missing = "the gs program is not installed (apt-get install ghostscript)"
        return Kit(uploads=uploads, pages_per_job=config.glmocr_pages_per_job, shrinker_missing=missing)

    def shrinker(data: bytes, limit: int) -> Shrunk:
        return shrink(data, limit, program)

    return Kit(uploads=uploads, shrinker=shrinker, pages_per_job=config.glmocr_pages_per_job)
