"""Checks of addresses that users name: names are resolved, and their addresses checked."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Any

_METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254")
)
"""Addresses of metadata services that are not link-local."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotResolved(Exception):
    """The name has no address now."""


class Refused(Exception):
    """The name has an address to which nothing is sent."""


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


def resolved(host: str, port: int, *, refused: Callable[[Address], bool] = forbidden) -> list[tuple[Any, ...]]:
    """Addresses for TCP, as ``socket.getaddrinfo`` returns them.

    Connect to these: the name may resolve to another address the next time.

    Raises NotResolved and, when one of the addresses is ``refused``, Refused.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NotResolved(f"the name {host} cannot be resolved") from error
    if any(refused(ipaddress.ip_address(text(info))) for info in found):
        raise Refused(f"{host} is a loopback or link-local address, or a metadata service: nothing is sent there")
    return list(found)


def text(info: tuple[Any, ...]) -> str:
    """The address of an entry of `resolved`, without the zone of a link-local one."""
    return str(info[-1][0]).partition("%")[0]


def connected(found: Iterable[Any], seconds_left: Callable[[], float]) -> socket.socket:
    """Connect to the first of these addresses (of :func:`resolved`) that accepts.

    ``seconds_left``: time for the next try; without any there is none. Raises OSError.
    """
    failure: OSError = TimeoutError()
    for family, kind, protocol, _, where in found:
        left = seconds_left()
        if left <= 0:
            break
        made = socket.socket(family, kind, protocol)
        made.settimeout(max(0.001, left))
        try:
            made.connect(where)
        except OSError as error:
            made.close()
            failure = error
        else:
            return made
    raise failure
