"""Ports of this machine for the servers of tests."""

from __future__ import annotations

import contextlib
import random
import socket

FIRST, LAST = 20000, 29999
"""Outgoing connections take their ports from 32768 on (`ip_local_port_range`): a port from there
that is free now may be some client's when the server that it is meant for begins to listen, seconds
later. `hack/cluster/light-cluster` draws from the same range, the crash campaign from one below.
"""
_DRAWN = random.SystemRandom()


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports of an address of this machine on which nobody listens right now."""
    with contextlib.ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            with contextlib.suppress(OSError):
                server = socket.create_server((host, _DRAWN.randint(FIRST, LAST)))
                held.enter_context(server)
                found.append(server.getsockname()[1])
        return found


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]
