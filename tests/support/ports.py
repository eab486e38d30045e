"""Ports of this machine for the servers of tests."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

FIRST, LAST = 20000, 27999
"""Outgoing connections take their ports from 32768 on (`ip_local_port_range`): a port from there
that is free now may be some client's when the server that it is meant for begins to listen, seconds
later. `hack/cluster/light-cluster` draws from 28000 to 28999, tests in Java from 29000 to 29999,
the crash campaign from a range below.
"""
_DRAWN = random.SystemRandom()
_ours: set[int] = set()


@functools.cache
def _draws() -> IO[bytes]:
    """A file with a byte for each port; the process that has drawn a port holds a lock on its byte.

    Locks of this kind are the process's, and end with it. It must be opened once: closing any
    other handle of it would give them up.
    """
    return (Path(tempfile.gettempdir()) / "hudi-operator-test-ports").open("ab")


def _is_ours(port: int) -> bool:
    """Draw a port for this process: no other draw, here or in another process, has it then."""
    if port in _ours:
        return False
    try:
        fcntl.lockf(_draws(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _ours.add(port)
    return True


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports of an address of this machine on which nobody listens right now.

    None is drawn twice while this process lives: its server may begin to listen much later.
    """
    with contextlib.ExitStack() as held:
        found: list[int] = []
        while len(found) < count:
            port = _DRAWN.randint(FIRST, LAST)
            if _is_ours(port):
                with contextlib.suppress(OSError):
                    held.enter_context(socket.create_server((host, port)))
                    found.append(port)
        return found


def free_port() -> int:
    """One of them."""
    return free_ports(1)[0]


def own_address() -> str:
    """An address of this machine that is not its loopback. OSError when it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent
        return str(probe.getsockname()[0])
