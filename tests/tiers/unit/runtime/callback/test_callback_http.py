"""One request to a receiver, against a real HTTP server: bounds, addresses, credentials, and what
an error may say.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_runtime.callback.callback_http import Sender, Undelivered
from hudi_runtime.process import addresses
from tests.support.world.callback_parts import Receiver, receiver

WORD = "s3cr3t-bearer-word"


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiver() as made:
        yield made


def sender(url: str, *, timeout: float = 10, folder: Path | None = None) -> Sender:
    return Sender(url, timeout=timeout, folder=folder, refused=lambda address: False)


def refusal(made: Sender, body: bytes = b'{"subject":"x"}') -> Undelivered:
    with pytest.raises(Undelivered) as caught:
        made.post(body, "application/json")
    return caught.value


def test_an_event_is_posted_with_what_the_secret_says(server: Receiver, tmp_path: Path) -> None:
    (tmp_path / "bearerToken").write_text(f"{WORD}\n")
    (tmp_path / "headers").write_text("X-Team: lake\n\nX-Key:  two words \n")
    made = sender(server.url, folder=tmp_path)
    made.post(b'{"subject":"x"}', "application/cloudevents+json")
    (found,) = server.headers
    assert server.paths == ["/hook?x=1"]
    assert (found["Authorization"], found["X-Team"], found["X-Key"]) == (f"Bearer {WORD}", "lake", "two words")
    assert found["Content-Type"] == "application/cloudevents+json"
    (tmp_path / "bearerToken").write_text("another")
    made.post(b'{"subject":"y"}', "application/cloudevents+json")
    assert server.headers[1]["Authorization"] == "Bearer another", (
        "a Secret that was changed holds from the next event on"
    )


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_any_2xx_is_an_answer(server: Receiver, status: int) -> None:
    server.answers = [status]
    sender(server.url).post(b'{"subject":"x"}', "application/json")


@pytest.mark.parametrize("status", [400, 401, 404, 410, 429, 500, 503])
def test_anything_else_is_none_and_its_text_is_not_shown(server: Receiver, status: int) -> None:
    server.answers = [status]
    server.more = {"Retry-After": "17"}
    error = refusal(sender(server.url))
    assert (error.reason, str(error), error.retry_after) == (f"HTTP{status}", f"127.0.0.1 answered {status}", 17.0)


def test_a_redirect_is_not_followed(server: Receiver) -> None:
    server.answers = [server.url]
    error = refusal(sender(server.url))
    assert (error.reason, len(server.events)) == ("HTTP302", 1)
    assert "redirects are not followed" in str(error)


@pytest.mark.parametrize("how", ["hang", "drip"])
def test_a_receiver_that_hangs_or_drips_takes_its_timeout_and_no_more(server: Receiver, how: str) -> None:
    server.answers = [how]
    begun = time.monotonic()
    error = refusal(sender(server.url, timeout=0.5))
    assert (error.reason, str(error)) == ("Timeout", "127.0.0.1 has not answered within 0.5 s")
    assert time.monotonic() - begun < 5


def test_a_request_can_be_cut_off(server: Receiver) -> None:
    server.answers = ["hang"]
    made = sender(server.url, timeout=60)
    threading.Timer(0.3, made.abort).start()
    assert refusal(made).reason == "Aborted"
    assert refusal(made).reason in ("Aborted", "Timeout")
    assert len(server.events) == 1, "and nothing is sent after that"


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = refusal(sender(f"http://127.0.0.1:{port}/a/very/private/path"))
    assert (error.reason, str(error)) == ("ConnectionFailed", f"127.0.0.1 port {port}: Connection refused")
    assert refusal(sender("http://no-such-host.invalid/")).reason == "NameNotResolved"


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.9.10",
        "0.0.0.0",
        "169.254.169.254",
        "100.100.100.200",
        "168.63.129.16",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
    ],
)
def test_addresses_that_nothing_is_sent_to(address: str) -> None:
    assert addresses.forbidden(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "10.96.0.10",
        "192.168.1.1",
        "172.20.3.4",
        "100.64.3.4",
        "93.184.216.34",
        "fd12:3456:789a::2",
        "2001:db8::1",
        "64:ff9b::5db8:d822",
    ],
)
def test_addresses_of_services_and_of_the_world(address: str) -> None:
    assert not addresses.forbidden(ipaddress.ip_address(address))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]"])
def test_a_name_is_judged_by_what_it_resolves_to(server: Receiver, host: str) -> None:
    error = refusal(Sender(f"http://{host}:{server.server_address[1]}/", timeout=5, folder=None))
    assert error.reason == "AddressRefused"
    assert server.events == []


def test_one_bad_address_among_good_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 80))
            for address in ("93.184.216.34", "169.254.169.254")
        ]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert refusal(Sender("http://rebinding.example/", timeout=5, folder=None)).reason == "AddressRefused"


@pytest.mark.parametrize(
    ("files", "reason", "word"),
    [
        ({}, "SecretMissing", "bearerToken, headers, ca.crt"),
        ({"token": "of-a-service-account"}, "SecretMissing", "none of the keys"),
        ({"headers": "no colon"}, "SecretInvalid", "line 1 of key headers"),
        ({"headers": "X-A: 1\nBad Name: 2"}, "SecretInvalid", "line 2 of key headers"),
        ({"headers": "Host: elsewhere"}, "SecretInvalid", "sets host"),
        ({"headers": "Transfer-Encoding: chunked"}, "SecretInvalid", "sets transfer-encoding"),
        ({"headers": "X-A: 1\nx-a: 2"}, "SecretInvalid", "sets x-a twice"),
        ({"headers": "Authorization: x", "bearerToken": WORD}, "SecretInvalid", "sets authorization twice"),
        ({"bearerToken": f"{WORD}\r\nX-Evil: 1"}, "SecretInvalid", "printable ASCII"),
        ({"bearerToken": f"{WORD}\u00e9"}, "SecretInvalid", "printable ASCII"),
        ({"headers": "\n".join(f"X-{n}: 1" for n in range(40))}, "SecretInvalid", "more than 32 lines"),
        ({"headers": "X-A: 1\n" * 3000}, "SecretInvalid", "more than 16384 characters"),
        ({"ca.crt": "no certificate"}, "TLSFailed", "TLS with"),
    ],
)
def test_a_secret_that_cannot_be_used_is_named_without_its_values(
    tmp_path: Path, files: dict[str, str], reason: str, word: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    error = refusal(sender("https://127.0.0.1:1/", folder=tmp_path))
    assert error.reason == reason
    assert word in str(error)
    assert WORD not in str(error)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate of 127.0.0.1 and its key, signed by itself."""
    folder = tmp_path / "tls"
    folder.mkdir()
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=receiver",
    ]
    more = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(folder / "tls.key"),
        "-out",
        str(folder / "ca.crt"),
    ]
    subprocess.run([*command, *more], check=True, capture_output=True)
    return folder


def test_tls_is_checked_against_the_ca_of_the_secret(server: Receiver, certificate: Path, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "ca.crt", certificate / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = server.url.replace("http:", "https:")
    unknown = refusal(sender(url))
    assert unknown.reason == "TLSFailed"
    assert "127.0.0.1" in str(unknown)
    assert server.events == []
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "ca.crt").write_bytes((certificate / "ca.crt").read_bytes())
    sender(url, folder=secret).post(b'{"subject":"x"}', "application/json")
    assert [event["subject"] for event in server.events] == ["x"]
    other_name = refusal(sender(url.replace("127.0.0.1", "localhost"), folder=secret))
    assert other_name.reason == "TLSFailed"


def test_a_server_that_never_ends_its_handshake(certificate: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        error = refusal(sender(f"https://127.0.0.1:{silent.getsockname()[1]}/", timeout=0.5))
    assert error.reason == "Timeout"
    assert time.monotonic() - begun < 5
