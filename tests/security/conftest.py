"""How long fuzzing takes: seconds in the default suite, minutes with `--hypothesis-profile=fuzz`."""

from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

CORPUS = Path(__file__).parent / "corpus"
"""Inputs that once broke something: tried first, on every machine."""

settings.register_profile(
    "fuzz",
    max_examples=20_000,
    deadline=None,
    database=DirectoryBasedExampleDatabase(CORPUS),
    suppress_health_check=list(HealthCheck),
)
