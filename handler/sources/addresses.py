"""Which network addresses the worker may open a connection to on a caller's behalf."""

import ipaddress
from collections.abc import Sequence

from runpod.serverless.utils.rp_ssrf import is_safe_address

from handler.settings import Network

# What runpod 1.12.0's check lets through although it is not the public internet, or wraps an address that may not be:
# 6to4 and its relay, protocol assignments, old site-local, documentation, a cloud's host agent on a public address.
_ALSO_REFUSED: tuple[Network, ...] = tuple(
    ipaddress.ip_network(network)
    for network in ("2002::/16", "192.88.99.0/24", "192.0.0.0/24", "fec0::/10", "3fff::/20", "168.63.129.16/32")
)


def may_connect(address: str, private_networks: Sequence[Network]) -> bool:
    """Whether `address` is public, or inside a network that the operator opened by name."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    plain = mapped or parsed
    if any(plain in network for network in private_networks if network.version == plain.version):
        return True
    refused = any(plain in network for network in _ALSO_REFUSED if network.version == plain.version)
    return not refused and is_safe_address(address)
