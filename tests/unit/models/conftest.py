import random
from collections.abc import Iterator

import pytest
from huggingface_hub import constants

from tests.hub import Hub, serving


@pytest.fixture
def files() -> dict[str, bytes]:
    return {"config.json": b'{"model_type": "tiny"}', "model.safetensors": random.Random(7).randbytes(1_500_000)}


@pytest.fixture
def hub(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that this process and its children use."""
    with serving(files) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(
            constants, "HUGGINGFACE_CO_URL_TEMPLATE", running.url + "/{repo_id}/resolve/{revision}/{filename}"
        )
        yield running
