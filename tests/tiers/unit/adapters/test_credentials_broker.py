"""What the operator takes from a broker and from a store, and what it never says of it (F230)."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from hudi_operator.adapters import store_request
from hudi_operator.adapters.credentials_broker import LARGEST_ANSWER, CredentialsBroker, read_credentials
from hudi_operator.model.config import ConfigError, CredentialsBrokerConfig, OperatorConfig
from hudi_operator.model.ports import Fatal, OutcomeUnknown, Retryable
from hudi_operator.model.store_access import Credentials, Verdict

GOOD = {"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": "very+secret/value"}
ID = "hudi-" + "0" * 40


class Server:
    """Answers every request with the same bytes, and keeps what it was asked."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, json.dumps(GOOD).encode(), dict[str, str]()
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.asked.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            do_PUT = do_DELETE = answer  # noqa: N815 - names that http.server calls

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.stop()


def broker(url: str, **more: Any) -> CredentialsBroker:
    return CredentialsBroker(CredentialsBrokerConfig(url=url, store_endpoint=url, **more), seconds=2.0)


def issue(url: str, **more: Any) -> Credentials:
    return asyncio.run(broker(url, **more).issue(ID, table="lake/t", attempt="lake.w-1", path="s3a://lake/t"))


def test_an_answer_is_read_and_the_token_is_shown(server: Server, tmp_path: Any) -> None:
    (tmp_path / "token").write_text("of-the-operator\n")
    found = issue(server.url, token_file=str(tmp_path / "token"))
    assert (found.access_key_id, found.secret_access_key, found.session_token) == (*GOOD.values(), "")
    ((method, path, headers, body),) = server.asked
    assert (method, path, headers["authorization"]) == ("PUT", f"/v1/credentials/{ID}", "Bearer of-the-operator")
    assert json.loads(body) == {"table": "lake/t", "attempt": "lake.w-1", "path": "s3a://lake/t"}


BAD = {
    "no JSON": b"<html>",
    "nested without end": b"[" * 10000,
    "a list": b"[]",
    "no secret": json.dumps({"accessKeyId": "x"}).encode(),
    "a number": json.dumps({**GOOD, "accessKeyId": 7}).encode(),
    "empty": json.dumps({**GOOD, "secretAccessKey": ""}).encode(),
    "a line break": json.dumps({**GOOD, "accessKeyId": "x\nspark.evil=1"}).encode(),
    "a very long key": json.dumps({**GOOD, "accessKeyId": "x" * 129}).encode(),
    "credentials that expire": json.dumps({**GOOD, "expiration": "2030-01-01T00:00:00Z"}).encode(),
    "no text": b"\xff\xfe",
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD.keys())
def test_other_answers_are_refused_without_their_values(body: bytes, server: Server) -> None:
    server.body = body
    with pytest.raises(Fatal) as refused:
        issue(server.url)
    assert "very+secret" not in str(refused.value)
    assert "AKIDEXAMPLE" not in str(refused.value)
    with pytest.raises(Fatal):
        read_credentials(body)


@pytest.mark.parametrize(("status", "kind"), [(410, Fatal), (403, Fatal), (500, Retryable), (302, Retryable)])
def test_a_status_that_is_no_yes(status: int, kind: type[Exception], server: Server) -> None:
    server.status = status
    server.headers = {"Location": f"{server.url}/elsewhere"}
    with pytest.raises(kind) as told:
        issue(server.url)
    assert "very+secret" not in str(told.value)
    with pytest.raises((Fatal, Retryable)):
        asyncio.run(broker(server.url).revoke(ID))
    assert {path for _, path, _, _ in server.asked} == {f"/v1/credentials/{ID}"}, "a redirect was followed"


def test_an_endless_answer_is_cut(server: Server) -> None:
    server.body = b" " * (LARGEST_ANSWER + 1) + json.dumps(GOOD).encode()
    with pytest.raises(OutcomeUnknown):
        issue(server.url)


def test_only_204_says_revoked(server: Server) -> None:
    with pytest.raises(Retryable):
        asyncio.run(broker(server.url).revoke(ID))
    server.status, server.body = 204, b""
    asyncio.run(broker(server.url).revoke(ID))


def test_silence_is_an_unknown_outcome() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        slow = CredentialsBroker(CredentialsBrokerConfig(url=url, store_endpoint=url), seconds=0.3)
        with pytest.raises(OutcomeUnknown):
            asyncio.run(slow.revoke(ID))
        answer = asyncio.run(slow.ask_store(Credentials("a", "b"), "s3a://lake/t"))
    assert answer.verdict is Verdict.UNKNOWN


def xml(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message></Error>".encode()


ANSWERS = [
    (204, b"", Verdict.ACCEPTED),
    (200, b"", Verdict.ACCEPTED),
    (404, xml("NoSuchKey"), Verdict.ACCEPTED),
    (404, xml("NoSuchBucket"), Verdict.UNKNOWN),
    (403, xml("InvalidAccessKeyId"), Verdict.REFUSED),
    (403, xml("AccessDenied"), Verdict.REFUSED),
    (400, xml("ExpiredToken"), Verdict.REFUSED),
    (403, xml("SignatureDoesNotMatch"), Verdict.UNKNOWN),
    (403, xml("RequestTimeTooSkewed"), Verdict.UNKNOWN),
    (403, b"", Verdict.UNKNOWN),
    (403, b"<html>a proxy</html>", Verdict.UNKNOWN),
    (503, xml("AccessDenied"), Verdict.UNKNOWN),
    (301, xml("PermanentRedirect"), Verdict.UNKNOWN),
]


@pytest.mark.parametrize(("status", "body", "verdict"), ANSWERS)
def test_only_a_refusal_of_the_identity_counts(status: int, body: bytes, verdict: Verdict, server: Server) -> None:
    server.status, server.body = status, body
    assert asyncio.run(broker(server.url).ask_store(Credentials("a", "b"), "s3a://lake/t")).verdict is verdict


def test_the_request_names_what_never_exists_and_is_signed(server: Server) -> None:
    server.status, server.body = 204, b""
    asyncio.run(broker(server.url).ask_store(Credentials("key", "secret", "session"), "s3a://lake/a b/t"))
    ((method, path, headers, body),) = server.asked
    assert (method, path, body) == ("DELETE", f"/lake/a%20b/t/{store_request.NEVER}", b"")
    assert headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=key/")
    assert headers["x-amz-security-token"] == "session"
    assert "secret" not in json.dumps(headers)


def test_a_request_shows_neither_its_signature_nor_its_session() -> None:
    """That the signature is right is seen at a real store (tests/tiers/component)."""
    request = store_request.signed(
        Credentials("key-id", "secret", "session"), endpoint="https://s3", region="us-east-1", path="s3a://lake/t"
    )
    assert repr(request) == f"Signed(url='https://s3/lake/t/{store_request.NEVER}')"


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "broker:8443"},
        {"url": "https://user:word@broker:8443"},
        {"storeEndpoint": ""},
        {"identityCacheSeconds": 0},
        {"requestSeconds": 4000},
        {"requestSeconds": "200"},
        {"region": "us east"},
        {"drain": 1},
    ],
)
def test_a_configuration_that_cannot_be_used(wrong: dict[str, Any]) -> None:
    good = {"url": "https://broker:8443", "storeEndpoint": "https://s3:9000"}
    assert OperatorConfig.from_dict({"credentialsBroker": good}).credentials_broker.given
    assert not OperatorConfig.from_dict({}).credentials_broker.given
    with pytest.raises(ConfigError, match="credentialsBroker"):
        OperatorConfig.from_dict({"credentialsBroker": {**good, **wrong}})


def test_no_text_of_credentials_has_a_value() -> None:
    assert repr(Credentials("key-id", "the-secret", "the-session")) == "Credentials()"
