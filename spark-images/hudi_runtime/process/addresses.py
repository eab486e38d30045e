"""Addresses to which nothing is sent on a user's word."""

from __future__ import annotations

import ipaddress

_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
"""Addresses of metadata services that are not link-local."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def forbidden(address: Address) -> bool:
    """Whether requests to this address are forbidden."""
    if isinstance(address, ipaddress.IPv6Address):
        inside = (
            address.ipv4_mapped
            or address.sixtofour
            or (ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None)
        )
        if inside is not None:
            return forbidden(inside)
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address in _METADATA
    )
