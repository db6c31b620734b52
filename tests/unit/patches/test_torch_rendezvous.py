import pytest

from handler.patches import torch_rendezvous
from handler.patches.patch import Outcome, run


def test_a_cluster_templates_variables_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MASTER_ADDR", "10.0.0.1"), ("WORLD_SIZE", "8"), ("GLOO_SOCKET_IFNAME", "eth0")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NCCL_SOCKET_IFNAME", raising=False)
    assert run(torch_rendezvous.PATCH).outcome is Outcome.APPLIED
    assert run(torch_rendezvous.PATCH).outcome is Outcome.NOT_NEEDED
    monkeypatch.setenv("RANK", "3")
    assert not torch_rendezvous.verify()
    torch_rendezvous.apply()
