"""Whether a Hive Metastore answers at an address.

Hive's client takes the first bytes of an answer for a length and makes room for it. The answer of
an HTTP server is 1.2 GB that way, and the agent's process ends. So nothing is left to that client
before the address has answered a small call in the metastore's protocol.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

_METHOD = b"getStatus"
_VERSION = 0x8001
_CALL, _REPLY, _EXCEPTION = 1, 2, 3
CALL = struct.pack("!HHI", _VERSION, _CALL, len(_METHOD)) + _METHOD + struct.pack("!IB", 1, 0)
"""Thrift's strict binary protocol, without frames. A metastore that does not know the method says
so in the same form.
"""
ANSWERS = frozenset(
    struct.pack("!HHI", _VERSION, kind, len(_METHOD)) + _METHOD + struct.pack("!I", 1) for kind in (_REPLY, _EXCEPTION)
)
"""Prefixes of an answer; nothing after them is read."""
_LONGEST = max(map(len, ANSWERS))


def problem(uri: str, *, seconds: float, clock: Callable[[], float] = time.monotonic) -> str:
    """Problem at ``thrift://address:port``; empty when a metastore answers there in time."""
    parts = urlsplit(uri)
    end = clock() + seconds
    found = b""
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=seconds) as connection:
            connection.sendall(CALL)
            while len(found) < _LONGEST and any(answer.startswith(found) for answer in ANSWERS):
                connection.settimeout(max(0.01, end - clock()))
                got = connection.recv(_LONGEST - len(found))
                if not got or clock() > end:
                    break
                found += got
    except TimeoutError:
        pass
    except OSError as error:
        return f"{uri}: {error.strerror or type(error).__name__}"
    if found in ANSWERS:
        return ""
    if any(answer.startswith(found) for answer in ANSWERS):
        return f"{uri} does not answer as a Hive Metastore within {max(1, round(seconds))} s"
    return f"{uri} answers, but is no Hive Metastore: is the port right, and without TLS and SASL?"


def answering(uris: Sequence[str], *, seconds: float) -> tuple[list[str], list[str]]:
    """Addresses of metastores that answer, problems of the others; within ``seconds`` in all."""
    found: list[str] = []
    wrong: list[str] = []
    for uri in uris:
        said = problem(uri, seconds=seconds / len(uris))
        if said:
            wrong.append(said)
        else:
            found.append(uri)
    return found, wrong
