"""The clock jumps past the end of every certificate: etcd's, the gateway's to etcd and to pods. Who
is connected goes on; nobody else connects until they are renewed; then everybody does, without a
restart.

etcd, the gateway and the pods' connections are real, and so are the sessions of the JVM that is cut
off meanwhile while it has the lock. Certificates are issued as by a process whose clock was behind
by nearly their whole life.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest

from hudi_contract.keys import Kind, TableKeys
from hudi_operator.adapters import authority
from hudi_operator.adapters.authority import KeyPair, Request
from tests.support.harness.gateway import Client, Gateway, Pod, program
from tests.support.harness.servers import Etcd, wait_for
from tests.support.harness.wire import Wire
from tests.support.harness.writer_process import WriterProcess

OWN = TableKeys("/hudi", "0123456789abcdef0123456789abcdef")
DRIVER, INC = Pod("ours", "load-7df5b65f-1", "uid-driver"), "11111111-aaaa"
LIFE = timedelta(days=7)
LEFT = timedelta(seconds=30)
"""Enough to start everything and connect."""
HEARTBEAT_LOST = 16
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


LEASE_SECONDS = 5
HELD = 0.5
"""Seconds after which nothing that was on its way moves any more."""


@dataclass
class Sessions:
    """A JVM behind a wire and another one beside it, each with the session of a writer; both go
    through the gateway.
    """

    etcd: Etcd
    gateway: Gateway
    other: Gateway
    """Which the JVM behind the wire has not met before: with one that it has, Java resumes its TLS
    session and looks at no certificate.
    """
    wire: Wire
    cut: WriterProcess
    kept: WriterProcess

    def lost(self) -> dict[str, Any]:
        """What the session behind the wire says."""
        return self.cut.writers()["cut"]

    def lock(self) -> dict[str, Any] | None:
        """The lock as etcd has it."""
        key = OWN.of(Kind.LOCK)
        return self.etcd.read(key).get(key)

    def cut_with_the_lock(self) -> float:
        """End the connection while its session has the lock, when all certificates have ended, and
        let it connect again, if it can; returns when that was (monotonic).
        """
        self.lock()  # the test itself is connected, too
        ends = renew(self.etcd, now=datetime.now(tz=UTC) - LIFE + timedelta(seconds=5))
        wait_for("they have ended", lambda: datetime.now(tz=UTC) > ends)
        for each in (self.gateway, self.other):
            wait_for("a gateway shows one that has ended", lambda each=each: not connects(each))
        self.cut.commit_on(3)
        self.kept.commit_on(3)
        for _ in range(100):
            self.wire.hold()
            time.sleep(HELD)
            lock = self.lock()
            if lock is not None and lock["inc"] == self.lost()["inc"]:
                break
            self.wire.mend()
            time.sleep(HELD)
        else:
            raise AssertionError("it never had the lock")
        self.wire.leads_to(self.other.port)
        self.wire.cut()
        self.wire.mend()
        return time.monotonic()

    def knows_within_its_lease(self) -> None:
        """Wait until the session says that it may be taken for dead, which others learn later."""
        alive = OWN.of(Kind.ALIVE, self.lost()["inc"])

        def seen() -> str:
            is_over = alive not in self.etcd.read(alive)
            state = str(self.lost()["state"])
            return state if is_over or state != "LIVE" else ""

        assert wait_for("it is lost", seen) == "LOST"

    def holds(self) -> list[tuple[str, str]]:
        """Begin and completion of each commit of both, in order."""
        names = [path.stem for path in (self.kept.folder / ".hoodie/timeline").glob("*.commit")]
        return sorted((begun, completed) for begun, _, completed in (name.partition("_") for name in names))

    def nobody_was_in_between(self) -> None:
        """Each commit is begun and completed in one hold of the lock."""
        holds = self.holds()
        assert len(holds) > 10
        assert all(one[1] < other[0] for one, other in itertools.pairwise(holds)), holds
        assert (self.cut.together, self.kept.together) == (0, 0)


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Callable[[int], Sessions]]:
    """Starts them, with so many seconds of silence until a writer halts."""
    (tmp_path / "etcd").mkdir()
    etcd = Etcd(tmp_path / "etcd")
    (tmp_path / "other").mkdir()
    gateway, other = Gateway(etcd, tmp_path), Gateway(etcd, tmp_path / "other")
    other.issuer = gateway.issuer
    other.tell_keys(gateway.issuer)
    started: list[WriterProcess] = []
    pods = {name: Pod("ours", f"load-{name}-1", f"uid-{name}") for name in ("cut", "kept")}
    lock = {"leaseSeconds": LEASE_SECONDS, "keepAliveSeconds": 1, "rpcTimeoutSeconds": 2, "drainSeconds": 1}

    def jvm(name: str, endpoint: str) -> WriterProcess:
        pod, token = pods[name], tmp_path / f"token-{name}"
        token.write_text(gateway.issuer.token(pod))
        meta = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        way = {"endpoints": endpoint, "cert": "", "key": "", "token": str(token)}
        started.append(
            WriterProcess(etcd, tmp_path, OWN.table_id, {name: {"metadata": meta}}, pause_millis=5, way={name: way})
        )
        return started[-1]

    with Wire("127.0.0.1", gateway.port) as wire:

        def start(silence: int) -> Sessions:
            etcd.start()
            etcd.set_up_users()
            gateway.start()
            other.start()
            gate = {"state": "open", "table": "ours/flights", "mode": "PodTermination", "protocolVersion": 1}
            etcd.put(OWN.of(Kind.GATE), gate | {"lock": lock | {"silenceSeconds": silence}}, identity="operator")
            for pod in pods.values():
                admission = {"attempt": pod.attempt, "role": "writer"}
                etcd.put(OWN.of(Kind.ADMIT, pod.attempt), admission, identity="operator")
            kept = jvm("kept", gateway.endpoint)
            return Sessions(etcd, gateway, other, wire, jvm("cut", f"https://127.0.0.1:{wire.port}"), kept)

        try:
            yield start
        finally:
            for process in started:
                process.kill()
            gateway.stop()
            other.stop()
            etcd.stop()


def test_a_jvm_with_the_lock_goes_on_when_they_are_renewed_in_time(sessions: Callable[[int], Sessions]) -> None:
    """It outlives its lease, nobody else has its lock meanwhile, and it needs no restart."""
    scene = sessions(60)
    inc = scene.lost()["inc"]
    since = scene.cut_with_the_lock()
    scene.knows_within_its_lease()
    took = time.monotonic() - since
    commits, others = scene.lost()["commits"], scene.kept.writers()["kept"]["commits"]
    alive = OWN.of(Kind.ALIVE, inc)
    wait_for("its lease is over", lambda: alive not in scene.etcd.read(alive), seconds=2 * LEASE_SECONDS)
    lock = scene.lock()
    assert lock is not None
    assert lock["inc"] == inc
    renewed = time.monotonic()
    renew(scene.etcd, now=datetime.now(tz=UTC))
    wait_for("it goes on", lambda: scene.lost()["state"] == "LIVE" and scene.lost()["commits"] > commits + 3)
    back = time.monotonic() - renewed
    scene.kept.commit_on(3)
    assert scene.kept.writers()["kept"]["commits"] > others
    assert scene.lost()["inc"] == inc, "it was never another one"
    assert "halted" not in scene.lost()
    scene.nobody_was_in_between()
    print(f"LOST {took:.1f} s after it was cut off; goes on {back:.1f} s after the renewal")


def test_a_jvm_with_the_lock_ends_when_they_are_not_renewed_in_time(sessions: Callable[[int], Sessions]) -> None:
    """Its lock stays: whether it has ended is for the operator to prove, and nobody publishes until
    then.
    """
    scene = sessions(int(SILENCE_SECONDS))
    inc = scene.lost()["inc"]
    since = scene.cut_with_the_lock()
    wait_for("it has halted", lambda: scene.lost().get("halted") == HEARTBEAT_LOST, seconds=6 * SILENCE_SECONDS)
    took = time.monotonic() - since
    scene.cut.kill()  # a JVM that halts is gone; the harness only notes it
    others, published = scene.kept.writers()["kept"]["commits"], scene.holds()
    renew(scene.etcd, now=datetime.now(tz=UTC))
    wait_for("a gateway shows the renewed one", lambda: connects(scene.gateway))
    time.sleep(2 * LEASE_SECONDS)
    lock = scene.lock()
    assert lock is not None
    assert lock["inc"] == inc, "a lease frees no lock"
    assert scene.kept.writers()["kept"]["commits"] == others
    assert scene.holds() == published
    assert "halted" not in scene.kept.writers()["kept"], "it waits, and lives"
    print(f"ended {took:.1f} s after it was cut off")
