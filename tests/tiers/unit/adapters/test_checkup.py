"""What ``helm test`` asks a release: real connections to servers that are ready, not ready, absent,
or somebody else.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hudi_operator import checkup
from hudi_operator.adapters import authority
from hudi_operator.adapters.authority import KeyPair, Request
from hudi_operator.observability import Probes

NOW = datetime.now(tz=UTC)
OURS, THEIRS = (authority.make_authority(name, seconds=3600, now=NOW) for name in ("ours", "theirs"))


@contextmanager
def probed(probes: Probes) -> Iterator[str]:
    """The operator's own server of probes."""
    server = probes.serve(0)
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/readyz"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def shown(folder: Path, ca: KeyPair, name: str = "localhost") -> Iterator[str]:
    """A server with a certificate of this authority for this name."""
    pair = authority.issue(ca, Request("gateway", 3600, (name,)), now=NOW)
    (folder / "pair").write_bytes(pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "pair")
    context.set_alpn_protocols(["h2"])

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return  # closed
            try:
                with context.wrap_socket(connection, server_side=True) as secured:
                    secured.recv(1)
            except OSError:
                connection.close()

    with socket.create_server(("localhost", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"https://localhost:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def asked(folder: Path, *urls: str, seconds: float = 0) -> tuple[bool, list[str]]:
    """Whether all answered, and what was said."""
    (folder / "ca.crt").write_bytes(OURS.certificate)
    said: list[str] = []
    return checkup.checked(urls, str(folder / "ca.crt"), seconds=seconds, say=said.append), said


def test_a_release_that_answers(tmp_path: Path) -> None:
    probes = Probes()
    probes.not_ready = ""
    with probed(probes) as operator, shown(tmp_path, OURS) as gateway:
        good, said = asked(tmp_path, operator, gateway)
    assert good, said
    assert said[0] == f"ok      {operator}: 1 ready"
    assert said[1].startswith(f"ok      {gateway}: certificate until ")


def test_one_that_is_not_ready_is_named_with_its_answer(tmp_path: Path) -> None:
    with probed(Probes()) as operator:
        assert asked(tmp_path, operator) == (
            False,
            [f"FAILED  {operator}: ValueError: 127.0.0.1 answers 503 'starting'"],
        )


def test_it_is_asked_until_it_is_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probes = Probes()

    def starts(seconds: float) -> None:
        probes.not_ready = ""

    monkeypatch.setattr(checkup.time, "sleep", starts)
    with probed(probes) as operator:
        assert asked(tmp_path, operator, seconds=60) == (True, [f"ok      {operator}: 1 ready"])


def test_every_pod_behind_a_name_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.2 is a pod that is gone: nobody listens there."""
    monkeypatch.setattr(checkup, "addresses", lambda url: ["127.0.0.1", "127.0.0.2"])
    with socket.create_server(("127.0.0.1", 0)) as one:
        threading.Thread(target=_answer, args=(one,), daemon=True).start()
        url = f"http://name:{one.getsockname()[1]}/readyz"
        good, said = asked(tmp_path, url)
        assert (good, len(said)) == (False, 1)
        assert said[0].startswith(f"FAILED  {url}: OSError: 127.0.0.2: ")


def _answer(listening: socket.socket) -> None:
    connection, _ = listening.accept()
    with connection:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_a_name_that_nobody_knows_and_a_port_that_nobody_serves(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    urls = (f"http://127.0.0.1:{port}/readyz", "http://nobody.invalid:8080/readyz", f"https://127.0.0.1:{port}")
    good, said = asked(tmp_path, *urls)
    assert (good, len(said)) == (False, 3)
    assert said[0].startswith(f"FAILED  {urls[0]}: OSError: 127.0.0.1: ")
    assert said[1].startswith(f"FAILED  {urls[1]}: gaierror: ")
    assert said[2].startswith(f"FAILED  {urls[2]}: ConnectionRefusedError: ")


@pytest.mark.parametrize(("ca", "name"), [(THEIRS, "localhost"), (OURS, "elsewhere.svc")])
def test_somebody_elses_certificate_is_refused(tmp_path: Path, ca: KeyPair, name: str) -> None:
    with shown(tmp_path, ca, name) as gateway:
        good, said = asked(tmp_path, gateway)
    assert not good
    assert "CERTIFICATE_VERIFY_FAILED" in said[0]


def test_the_exit_code_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with probed(Probes()) as operator:
        assert checkup.main([f"--ca={tmp_path}", "--seconds=0", operator]) == 1
    assert capsys.readouterr().out.startswith(f"FAILED  {operator}: ")
