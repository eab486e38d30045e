"""The example broker and a real S3 server with users: what the operator sees (F230, F231)."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import signal
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hudi_contract import naming
from hudi_operator.adapters.credentials_broker import CredentialsBroker
from hudi_operator.model.config import CredentialsBrokerConfig
from hudi_operator.model.ports import Fatal, OutcomeUnknown, Retryable
from hudi_operator.model.store_access import Credentials, StoreAnswer, Verdict
from tests.support.harness.revocable_store import HalfSent, RevocableStore

CACHE_SECONDS, LIMIT_SECONDS = 6, 2.0
TABLE = "s3a://lake/tables/flights"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RevocableStore]:
    folder = tmp_path_factory.mktemp("revocable")
    (folder / "files" / "lake" / "tables" / "flights").mkdir(parents=True)
    made = RevocableStore(folder / "store", folder / "files", cache_seconds=CACHE_SECONDS, limit_seconds=LIMIT_SECONDS)
    yield made
    made.stop()


def broker(store: RevocableStore, endpoint: str = "") -> CredentialsBroker:
    return CredentialsBroker(
        CredentialsBrokerConfig(
            url=store.broker, token_file=str(store.token_file), store_endpoint=endpoint or store.url
        )
    )


def new_id() -> str:
    return naming.credential_id("0" * 16, f"lake.load-{os.urandom(4).hex()}")


def issue(store: RevocableStore, id: str, path: str = TABLE) -> Credentials:
    return asyncio.run(broker(store).issue(id, table="lake/flights", attempt="lake.load-1", path=path))


def ask(store: RevocableStore, credentials: Credentials, path: str = TABLE, endpoint: str = "") -> StoreAnswer:
    return asyncio.run(broker(store, endpoint).ask_store(credentials, path))


def head(url: str, name: str, body: bytes, credentials: Credentials, *, method: str = "PUT") -> bytes:
    """A signed request without its body."""
    at, digest = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"), hashlib.sha256(body).hexdigest()
    headers = {"host": urlsplit(url).netloc, "x-amz-content-sha256": digest, "x-amz-date": at}
    names, lines = ";".join(headers), "".join(f"{name}:{value}\n" for name, value in headers.items())
    scope = f"{at[:8]}/us-east-1/s3/aws4_request"
    canonical = hashlib.sha256(f"{method}\n/{name}\n\n{lines}\n{names}\n{digest}".encode()).hexdigest()
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in (at[:8], "us-east-1", "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{canonical}".encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    headers["content-length"] = str(len(body))
    return (f"{method} /{name} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n").encode()


def test_credentials_reach_their_own_table_and_nothing_else(store: RevocableStore) -> None:
    id = new_id()
    given = issue(store, id)
    assert ask(store, given).verdict is Verdict.ACCEPTED
    assert issue(store, id) == given, "the operator may ask again before it has made the Secret"
    assert ask(store, given, "s3a://lake/tables/others").verdict is Verdict.REFUSED
    with pytest.raises(Retryable):
        issue(store, id, "s3a://lake/tables/others")
    assert ask(store, given, "s3a://lake/tables/others").verdict is Verdict.REFUSED


def test_revoked_is_for_ever_whatever_comes_late(store: RevocableStore) -> None:
    """A request for credentials that an earlier operator has sent may arrive after it."""
    id, never = new_id(), new_id()
    given = issue(store, id)
    asyncio.run(broker(store).revoke(id))
    asyncio.run(broker(store).revoke(id))
    asyncio.run(broker(store).revoke(never))
    store.kill("broker")
    store.start_broker()
    store.wait_for_broker()
    for each in (id, never):
        with pytest.raises(Fatal, match="revoked"):
            issue(store, each)
    time.sleep(CACHE_SECONDS)
    assert ask(store, given).verdict is Verdict.REFUSED


def test_who_has_no_token_gets_nothing(store: RevocableStore, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("another")
    stranger = CredentialsBroker(
        CredentialsBrokerConfig(url=store.broker, token_file=str(tmp_path / "token"), store_endpoint=store.url)
    )
    id = new_id()
    given = issue(store, id)
    with pytest.raises(Fatal):
        asyncio.run(stranger.revoke(id))
    with pytest.raises(Fatal):
        asyncio.run(stranger.issue(new_id(), table="lake/flights", attempt="lake.load-1", path=TABLE))
    assert ask(store, given).verdict is Verdict.ACCEPTED
    said = store.told("broker")
    assert given.secret_access_key not in said
    assert "token-of-the-operator" not in said


def test_a_broker_or_a_store_that_does_not_answer_proves_nothing(store: RevocableStore) -> None:
    id = new_id()
    given = issue(store, id)
    store.signal("other", signal.SIGSTOP)
    try:
        with pytest.raises((Retryable, OutcomeUnknown)):
            asyncio.run(broker(store).revoke(id))
    finally:
        store.signal("other", signal.SIGCONT)
    store.signal("limits", signal.SIGSTOP)
    try:
        assert ask(store, given).verdict is Verdict.UNKNOWN
    finally:
        store.signal("limits", signal.SIGCONT)
    with pytest.raises(Fatal):
        issue(store, id)
    asyncio.run(broker(store).revoke(id))
    time.sleep(CACHE_SECONDS)
    assert ask(store, given).verdict is Verdict.REFUSED


def test_a_server_remembers_users_that_another_one_has_forgotten(store: RevocableStore) -> None:
    """F231: the refusal of one server is no proof; after the cache's time every server refuses.

    These users need no policy of a bucket, whose change every server sees at once.
    """
    user = Credentials(f"user-{os.urandom(3).hex()}", "secret-of-the-user")
    store.admin("create-user", "--access", user.access_key_id, "--secret", user.secret_access_key, "--role", "admin")
    for endpoint in (store.url, store.other):
        assert ask(store, user, endpoint=endpoint).verdict is Verdict.ACCEPTED
    store.admin("delete-user", "--access", user.access_key_id)
    at = time.monotonic()
    assert ask(store, user, endpoint=store.other).verdict is Verdict.REFUSED
    assert ask(store, user).verdict is Verdict.ACCEPTED, "what whoever believes one server does not see"
    while ask(store, user).verdict is Verdict.ACCEPTED:
        assert time.monotonic() - at < CACHE_SECONDS + 5
        time.sleep(0.2)
    print(f"the last server refused {time.monotonic() - at:.1f} s after the removal; its cache: {CACHE_SECONDS} s")


def test_a_request_that_has_begun_outlives_the_revocation_without_a_limit(store: RevocableStore) -> None:
    """F230: half a body is sent, the credentials are refused, and the rest arrives.

    The server alone completes it; the time limits end it within `requestSeconds`.
    """
    id, body = new_id(), b"x" * 200_000
    given = issue(store, id)
    halves = {
        name: HalfSent(url, head(url, f"lake/tables/flights/{name}", body, given), body)
        for name, url in (("bare", store.bare), ("limited", store.url))
    }
    asyncio.run(broker(store).revoke(id))
    time.sleep(max(CACHE_SECONDS, 3 * LIMIT_SECONDS) + 1)
    assert ask(store, given).verdict is Verdict.REFUSED
    assert ask(store, given, endpoint=store.bare).verdict is Verdict.REFUSED
    answers = {name: half.go_on() for name, half in halves.items()}
    time.sleep(1)
    there = {path.name for path in (store.folder.parent / "files/lake/tables/flights").iterdir()}
    assert answers["bare"].startswith("HTTP/1.1 200"), answers
    assert answers["limited"] == ""
    assert there >= {"bare"}
    assert "limited" not in there


def test_a_long_download_is_not_ended(store: RevocableStore) -> None:
    """The client says nothing meanwhile, and the server sends for longer than every limit."""
    given, size = issue(store, new_id()), 6_000_000
    (store.folder.parent / "files/lake/tables/flights/large").write_bytes(b"y" * size)
    where, found, since = urlsplit(store.url), 0, time.monotonic()
    with socket.create_connection((where.hostname or "", where.port or 80), timeout=20) as download:
        download.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        download.sendall(head(store.url, "lake/tables/flights/large", b"", given, method="GET"))
        while found < size and (piece := download.recv(65536)):
            found += len(piece)
            time.sleep(0.1)
    assert found >= size
    assert time.monotonic() - since > 2 * LIMIT_SECONDS
