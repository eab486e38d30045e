"""What those who reach the ports of probes and metrics may cost: real connections (F653)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_operator.metrics.meter import Metrics
from hudi_operator.model.config import MetricsConfig
from hudi_operator.observability import Limited, Probes, serve_metrics

PATHS = {"probes": "/healthz", "metrics": "/metrics"}


@contextmanager
def served(kind: str) -> Iterator[int]:
    server: Any = Probes().serve(0) if kind == "probes" else serve_metrics(Metrics().registry, 0, MetricsConfig())
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def connect(port: int, address: str = "127.0.0.1") -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10, source_address=(address, 0))


def answer(connection: socket.socket, kind: str) -> str:
    """The first line of the answer; empty: the connection was closed."""
    try:
        connection.sendall(f"GET {PATHS[kind]} HTTP/1.0\r\n\r\n".encode())
        return connection.makefile("rb").readline().decode().strip()
    except ConnectionError:
        return ""


def is_closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("kind", PATHS)
def test_an_address_has_so_many_connections_and_others_get_in(kind: str) -> None:
    with served(kind) as port:
        held = [connect(port) for _ in range(Limited.of_address)]
        assert answer(connect(port), kind) == ""
        assert answer(connect(port, "127.0.0.2"), kind).endswith("200 OK")
        assert answer(held[0], kind).endswith("200 OK"), "who is in stays in"
        for one in held:
            one.close()


@pytest.mark.parametrize("kind", PATHS)
def test_who_has_most_gives_way_when_all_are_taken(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limited, "of_address", 3)
    monkeypatch.setattr(Limited, "of_all", 4)
    with served(kind) as port:
        many, one = [connect(port, "127.0.0.2") for _ in range(3)], connect(port, "127.0.0.3")
        assert answer(connect(port, "127.0.0.4"), kind).endswith("200 OK")
        assert is_closed(many[2])
        assert answer(many[0], kind).endswith("200 OK")
        assert answer(one, kind).endswith("200 OK")


@pytest.mark.parametrize("kind", PATHS)
def test_a_connection_that_is_old_gives_way(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limited, "of_address", 1)
    with served(kind) as port:
        slow = connect(port)
        assert answer(connect(port), kind) == ""
        monkeypatch.setattr(Limited, "seconds", 0.0)
        assert answer(connect(port), kind).endswith("200 OK")
        assert is_closed(slow)


@pytest.mark.parametrize("kind", PATHS)
def test_of_a_request_no_more_is_read_than_one_needs(kind: str) -> None:
    with served(kind) as port, connect(port) as long:
        sent = threading.Event()

        def send() -> None:
            try:
                long.sendall(f"GET {PATHS[kind]} HTTP/1.0\r\n".encode())
                for n in range(90):
                    long.sendall(f"X-{n}: {'a' * 60_000}\r\n".encode())
            except OSError:
                pass
            sent.set()

        threading.Thread(target=send, daemon=True).start()
        assert sent.wait(30), "the connection ends although the client has more to say"
        assert answer(connect(port), kind).endswith("200 OK")


@pytest.mark.parametrize("kind", PATHS)
def test_places_are_given_back(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Limited, "of_address", 2)
    with served(kind) as port:
        for _ in range(10):
            with connect(port) as connection:
                assert answer(connection, kind).endswith("200 OK")
                assert connection.makefile("rb").read() is not None
