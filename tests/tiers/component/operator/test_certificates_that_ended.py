"""The clock jumps past the end of every certificate: etcd's, the gateway's to etcd and to pods. Who
is connected goes on; nobody else connects until they are renewed; then everybody does, without a
restart.

etcd, the gateway and the pod's connection are real. Certificates are issued as by a process whose
clock was behind by nearly their whole life.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest

from hudi_contract.keys import Kind, TableKeys
from hudi_operator.adapters import authority
from hudi_operator.adapters.authority import KeyPair, Request
from tests.support.harness.gateway import Client, Gateway, Pod, program
from tests.support.harness.servers import Etcd, wait_for

OWN = TableKeys("/hudi", "0123456789abcdef0123456789abcdef")
DRIVER, INC = Pod("ours", "load-7df5b65f-1", "uid-driver"), "11111111-aaaa"
LIFE = timedelta(days=7)
LEFT = timedelta(seconds=30)
"""Enough to start everything and connect."""
SILENCE_SECONDS = 10.0
"""A writer halts when it has not heard of etcd for `lock.silenceSeconds`, at least this long."""


def issue(etcd: Etcd, name: str, common_name: str, *, now: datetime) -> datetime:
    """Replace a pair of files as the kubelet does; returns when the certificate ends."""
    signer = KeyPair((etcd.pki / "ca.crt").read_bytes(), (etcd.pki / "ca.key").read_bytes())
    serves = {"names": ("localhost",), "addresses": ("127.0.0.1",)} if name == "server" else {}
    made = authority.issue(signer, Request(common_name, int(LIFE.total_seconds()), **serves), now=now)
    for ending, content in (("crt", made.certificate), ("key", made.key)):
        new = etcd.pki / f"{name}.{ending}.new"
        new.write_bytes(content)
        new.rename(etcd.pki / f"{name}.{ending}")
    return authority.validity(made.certificate)[1]


def renew(etcd: Etcd, *, now: datetime) -> datetime:
    """All that are shown: the one of etcd is the gateway's towards pods, too."""
    return max(issue(etcd, "server", "etcd", now=now), issue(etcd, "gateway", "hudi-gateway", now=now))


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[tuple[Etcd, datetime]]:
    """An etcd with certificates that end soon, and when."""
    program()  # built before the time runs
    (tmp_path / "etcd").mkdir()
    etcd = Etcd(tmp_path / "etcd")
    ends = renew(etcd, now=datetime.now(tz=UTC) - LIFE + LEFT)
    etcd.start()
    try:
        etcd.set_up_users()
        yield etcd, ends
    finally:
        etcd.stop()


@pytest.fixture
def gateway(behind: tuple[Etcd, datetime], tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(behind[0], tmp_path)
    made.start()
    try:
        yield made
    finally:
        made.stop()


class Writer:
    """A registered driver: a heartbeat over and over, over one connection."""

    def __init__(self, client: Client) -> None:
        self._client, self._stop = client, threading.Event()
        self.beats, self.longest, self.problems = 0, 0.0, set[str]()
        self._lease = client.lease(seconds=60)
        client.put(OWN.of(Kind.WRITER, INC), DRIVER.registration(INC, "writer"))
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.2):
            try:
                self._client.put(OWN.of(Kind.ALIVE, INC), {"inc": INC, "n": self.beats}, lease=self._lease)
                self._client.keep_alive(self._lease)
            except grpc.RpcError as error:
                self.problems.add(str(error.details()))
                continue
            now = time.monotonic()
            self.longest, last, self.beats = max(self.longest, now - last), now, self.beats + 1

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def connects(gateway: Gateway) -> bool:
    """Whether a pod that begins now reaches etcd."""
    client = Client(gateway.endpoint, gateway.etcd.pki / "ca.crt", gateway.issuer.token(DRIVER))
    try:
        client.get(OWN.of(Kind.ALIVE, INC))
    except grpc.RpcError:
        return False
    finally:
        client.close()
    return True


def test_all_certificates_end_under_a_writer(behind: tuple[Etcd, datetime], gateway: Gateway) -> None:
    etcd, ends = behind
    etcd.put(OWN.of(Kind.ADMIT, DRIVER.attempt), {"attempt": DRIVER.attempt, "role": "writer"}, identity="operator")
    etcd.put(OWN.of(Kind.GATE), {"state": "open", "table": "ours/flights"}, identity="operator")
    process = gateway.pid
    assert connects(gateway)
    with Writer(gateway.pod(DRIVER)) as writer:
        wait_for("it beats", lambda: writer.beats > 2)
        while datetime.now(tz=UTC) < ends + timedelta(seconds=1):
            time.sleep(0.2)
        before = writer.beats
        assert not connects(gateway), "a certificate that has ended is refused"
        wait_for("who is connected goes on", lambda: writer.beats > before + 5, seconds=20)
        renew(etcd, now=datetime.now(tz=UTC))
        wait_for("others connect again", lambda: connects(gateway), seconds=30)
        # The gateway's own connection to etcd breaks, and comes back with the renewed certificate.
        etcd.stop()
        etcd.start()
        broken = writer.beats
        wait_for("it beats again", lambda: writer.beats > broken + 5, seconds=30)
    assert Path(f"/proc/{process}/exe").resolve().name == "hudi-gateway", "it was never restarted"
    assert writer.longest < SILENCE_SECONDS, writer.problems
    print(f"{writer.beats} heartbeats, longest time without one {writer.longest:.1f} s, also over a restart of etcd")
