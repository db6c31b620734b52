"""With a GPU and the published weights: the golden page reads right, and 155 pages take less than five minutes."""

import asyncio

import pytest

from handler.engine.gpu import visible_gpus
from scripts.prove_on_gpu import PAGES, known_pages, prove, report

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not visible_gpus(), reason="no NVIDIA GPU here"),
]


def test_155_pages() -> None:
    """The worker boots, so its gates passed, the golden page among them."""
    proof = asyncio.run(prove(known_pages(PAGES)))
    print(report(proof, PAGES))
    assert "golden page" in proof.output["debug"]["boot"]["seconds"]
    assert proof.missed(PAGES) == []
