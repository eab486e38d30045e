"""Who may read the operator's metrics: real connections to its server."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hudi_operator.adapters import authority
from hudi_operator.adapters.authority import KeyPair, Request
from hudi_operator.metrics.meter import Metrics
from hudi_operator.model.config import MetricsConfig
from hudi_operator.observability import serve_metrics

NOW = datetime.now(tz=UTC)


@contextmanager
def served(access: MetricsConfig) -> Iterator[int]:
    server = serve_metrics(Metrics().registry, 0, access)
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


def read(port: int, *, token: str = "", context: ssl.SSLContext | None = None) -> tuple[int, str]:
    """Status and text."""
    headers = {"Authorization": token} if token else {}
    url = f"http{'s' if context else ''}://localhost:{port}/metrics"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=10, context=context
        ) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def write(folder: Path, name: str, ca: KeyPair, pair: KeyPair) -> MetricsConfig:
    for suffix, content in (("ca", ca.certificate), ("crt", pair.certificate), ("key", pair.key)):
        (folder / f"{name}.{suffix}").write_bytes(content)
    return MetricsConfig(
        cert_file=str(folder / f"{name}.crt"),
        key_file=str(folder / f"{name}.key"),
        client_ca_file=str(folder / f"{name}.ca"),
    )


def trusting(ca: KeyPair, identity: MetricsConfig | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca.certificate.decode())
    if identity is not None:
        context.load_cert_chain(identity.cert_file, identity.key_file)
    return context


def test_without_settings_they_are_open() -> None:
    with served(MetricsConfig()) as port:
        status, text = read(port)
    assert status == 200
    assert "hudi_operator_reconciles_total" in text or "hudi_operator_leader" in text


@pytest.mark.parametrize(
    "token", ["", "Bearer", "Bearer wrong", "Basic right", "right", "Bearer rightx", "Bearer righ"]
)
def test_without_the_token_nothing_is_told(tmp_path: Path, token: str) -> None:
    (tmp_path / "token").write_text("right\n")
    with served(MetricsConfig(token_file=str(tmp_path / "token"))) as port:
        status, text = read(port, token=token)
        assert status == 401
        assert "hudi" not in text
        assert read(port, token="Bearer right")[0] == 200


@pytest.mark.parametrize("content", [None, b"", b"\n", b"\xff"])
def test_a_token_that_cannot_be_read_opens_nothing(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    with served(MetricsConfig(token_file=str(tmp_path / "token"))) as port:
        assert [read(port, token=token)[0] for token in ("", "Bearer ", "Bearer x")] == [503, 503, 503]
        (tmp_path / "token").write_text("new")
        assert read(port, token="Bearer new")[0] == 200, "a new token is read without a restart"


def test_clients_show_a_certificate_of_the_authority(tmp_path: Path) -> None:
    ca, other = (authority.make_authority(name, seconds=3600, now=NOW) for name in ("ca", "other"))
    access = write(tmp_path, "server", ca, authority.issue(ca, Request("metrics", 3600, names=("localhost",)), now=NOW))
    known = write(tmp_path, "known", ca, authority.issue(ca, Request("prometheus", 3600), now=NOW))
    unknown = write(tmp_path, "unknown", other, authority.issue(other, Request("prometheus", 3600), now=NOW))
    with served(access) as port:
        assert read(port, context=trusting(ca, known))[0] == 200
        for context in (trusting(ca), trusting(ca, unknown)):
            with pytest.raises((OSError, urllib.error.URLError)):
                read(port, context=context)
        # Somebody who connects and says nothing keeps nobody waiting.
        with socket.create_connection(("localhost", port)):
            assert read(port, context=trusting(ca, known))[0] == 200


def test_a_renewed_certificate_is_shown_without_a_restart(tmp_path: Path) -> None:
    first, second = (authority.make_authority(name, seconds=3600, now=NOW) for name in ("first", "second"))
    request = Request("metrics", 3600, names=("localhost",))
    access = MetricsConfig(cert_file=str(tmp_path / "s.crt"), key_file=str(tmp_path / "s.key"))
    write(tmp_path, "s", first, authority.issue(first, request, now=NOW))
    with served(access) as port:
        assert read(port, context=trusting(first))[0] == 200
        write(tmp_path, "s", second, authority.issue(second, request, now=NOW))
        assert read(port, context=trusting(second))[0] == 200
        with pytest.raises(urllib.error.URLError):
            read(port, context=trusting(first))
