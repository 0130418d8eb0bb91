"""Where a call comes from, as far as limits need to know.

Law: pure. What a caller claims about himself counts only when a trusted proxy passed it on.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import unquote

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_SITE_BITS = 64
"""One IPv6 customer has at least this network to himself, so it counts as one address."""


def caller_address(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """Tell the address that a limit counts: gRPC's `peer`, or behind trusted proxies the last one they were called by."""
    hops = [_address(hop.strip()) for hop in forwarded.split(",") if hop.strip()]
    hops.append(_peer_address(peer))
    for hop in reversed(hops):
        if hop is None or not any(hop in network for network in trusted):
            return _counted(hop)
    return _counted(hops[0])


def _peer_address(peer: str) -> Address | None:
    """Read `ipv4:1.2.3.4:5` or `ipv6:[::1]:5` (escaped or not); None for a local socket."""
    scheme, _, rest = unquote(peer).partition(":")
    return _address(rest.rpartition(":")[0].strip("[]")) if scheme in ("ipv4", "ipv6") else None


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _counted(address: Address | None) -> str:
    if address is None:
        return "local"
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((address, _SITE_BITS), strict=False))
    return str(address)
