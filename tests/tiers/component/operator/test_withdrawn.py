"""What a pod may do at a table that was taken from it, step by step (docs/design/identities.md).

The operator's own transactions on a real etcd, two gateways before it. A pod here sends what it
likes: none of its transactions compares its fence, as those of the lock module do.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from hudi_contract.keys import TIMELINE, Kind, TableKeys, assignment_key, attempt_report
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd import EtcdStore, Revisions
from tests.support.awaited import run
from tests.support.harness.etcd_connections import connect
from tests.support.harness.gateway import Client, Gateway, Pod, put
from tests.support.harness.servers import Etcd, JsonDict

TABLE = "00000000000000bb00000000000000bb"
KEYS = TableKeys("/hudi", TABLE)
AGENT_NAME = "hudi-agent-0123456789"
PODS = {"writer": Pod("ours", "load-7df5b65f-1", "uid-d"), "agent": Pod("ours", f"{AGENT_NAME}-4", "uid-a")}
NONCE = "c6f0d3a4-2b1e-4c55-9a77-0a1b2c3d4e5f"
"""What a place in the queue ends with."""
OTHERS = "20261124155500001"
"""An instant of somebody else."""
DEAD = "33333333-cccc"
"""Somebody else, whose instants an agent rolls back."""
HANDED = {"phase": "RollingBack", "reason": "Deleted", "times": {}, "instants": {}}


class Taken:
    """A pod of a role that is registered at a table and holds its lock, and the operator's hand."""

    def __init__(self, store: EtcdStore, etcd: Etcd, role: str, *gateways: Gateway) -> None:
        self.store, self.etcd, self.role, self.pod = store, etcd, role, PODS[role]
        self.inc, self.next = str(uuid.uuid4()), str(uuid.uuid4())
        self.clients = [gateway.pod(self.pod) for gateway in gateways]
        self.lease = self.clients[0].lease()
        gate = {"state": "open", "table": "ours/flights", "protocolVersion": 1}
        assert run(store.put_gate(TABLE, gate, expected_mod=0))
        run(store.put_admit(TABLE, attempt=self.pod.attempt, role=role))
        if role == "agent":
            run(store.put_assignment(TABLE, agent=AGENT_NAME, value={"id": TABLE, "table": "ours/flights"}))
            assert run(store.fence(TABLE, inc=DEAD, attempt="", settle=HANDED, if_not_alive=False))
        self.register(self.clients[0], self.inc)
        for client in self.clients:  # each remembers what the pod may do
            client.txn(*self.puts()[Kind.CLOCK])
        self.clients[0].txn(*self.puts()[Kind.LOCK], compare=(rpc.version_is(KEYS.of(Kind.LOCK), 0),))

    def register(self, client: Client, inc: str) -> Any:
        """Without a word about the admission, which the lock module compares."""
        return client.put(KEYS.of(Kind.WRITER, inc), self.pod.registration(inc, self.role))

    def puts(self) -> dict[Kind, tuple[Any, ...]]:
        """A put of every kind that a pod of this role may put, but a registration."""
        mine = {"inc": self.inc, "podUID": self.pod.uid, "attempt": self.pod.attempt, "value": "20261124155500000"}
        names = {
            Kind.ALIVE: self.inc,
            Kind.LOCK: "",
            Kind.QUEUE: f"{self.inc}-{NONCE}",
            Kind.INSTANT: "20261124155500000",
            Kind.CLOCK: "",
            Kind.REPORT: attempt_report(self.pod.attempt),
        }
        if self.role == "agent":
            names |= {Kind.SETTLE: DEAD, Kind.DONE: "create", Kind.INSTANT: OTHERS, Kind.REPORT: TIMELINE}
        on = {Kind.ALIVE: self.lease, Kind.QUEUE: self.lease}
        told = {Kind.SETTLE: HANDED}
        return {
            kind: (put(KEYS.of(kind, name), told.get(kind, mine), lease=on.get(kind, 0)),)
            for kind, name in names.items()
        }

    def put(self, client: Client, kind: Kind) -> Any:
        """A settle record is put in place of the one that stands (F529)."""
        compare = []
        if kind is Kind.SETTLE:
            stands = run(self.store.read_table(TABLE, "")).settles[DEAD]
            compare = [rpc.mod_is(KEYS.of(kind, DEAD), stands.mod_revision)]
        return client.txn(*self.puts()[kind], compare=compare)

    def may(self, what: Callable[[], Any]) -> bool:
        """Whether the gateway lets it pass; any other refusal than its own is an error."""
        try:
            what()
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.PERMISSION_DENIED:
                raise
            return False
        return True

    def may_write(self) -> list[set[Kind]]:
        """What each gateway lets it put."""
        return [
            {kind for kind in self.puts() if self.may(lambda k=kind, c=client: self.put(c, k))}
            for client in self.clients
        ]

    def may_read(self) -> bool:
        return all(
            self.may(lambda c=client: c.txn(rpc.get_prefix(KEYS.tables), rpc.get_prefix(KEYS.control)))
            for client in self.clients
        )

    def assignments(self) -> list[str]:
        """Of its agent."""
        asked = rpc.get_prefix(assignment_key("/hudi", AGENT_NAME, ""))
        return [str(kv.key) for kv in self.clients[0].txn(asked).responses[0].response_range.kvs]

    def written(self) -> dict[str, JsonDict]:
        return self.etcd.read(KEYS.tables)

    def withdraw(self) -> None:
        """Assignment and admission go, as with an agent that is not the table's any more."""
        if self.role == "agent":
            run(self.store.put_assignment(TABLE, agent=AGENT_NAME, value=None))
        run(self.store.delete_admit(TABLE, attempt=self.pod.attempt))

    def fence(self) -> None:
        record = {"phase": "Fenced", "reason": "Deleted", "times": {}}
        assert run(self.store.fence(TABLE, inc=self.inc, attempt=self.pod.attempt, settle=record, if_not_alive=False))

    def settle(self) -> None:
        """Its lock is deleted, and its registration."""
        facts = run(self.store.read_table(TABLE, ""))
        if facts.lock is not None:
            assert run(self.store.unlock(TABLE, inc=self.inc, create_revision=facts.lock.create_revision))
        mod = facts.settles[self.inc].mod_revision
        owned = [(t, s.mod_revision) for t, s in facts.instants.items() if s.value["inc"] == self.inc]
        record = {"phase": "Settled", "reason": "Deleted", "times": {}}
        assert run(self.store.finish_settle(TABLE, inc=self.inc, value=record, expected_mod=mod, instants=owned))


@pytest.fixture(scope="module")
def gateways(etcd: Etcd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, Gateway]]:
    first, second = (Gateway(etcd, tmp_path_factory.mktemp(name)) for name in ("first", "second"))
    second.issuer = first.issuer
    second.tell_keys(first.issuer)
    first.start()
    second.start()
    try:
        yield first, second
    finally:
        first.stop()
        second.stop()


@pytest.fixture(params=["writer", "agent"])
def taken(etcd: Etcd, gateways: tuple[Gateway, Gateway], request: pytest.FixtureRequest) -> Iterator[Taken]:
    connection = connect(etcd)
    try:
        yield Taken(EtcdStore(connection, "/hudi", revisions=Revisions()), etcd, request.param, *gateways)
    finally:
        connection.close()
        for prefix in (KEYS.control, KEYS.tables, assignment_key("/hudi", AGENT_NAME, "")):
            done = etcd.ctl("root", "del", "--prefix", prefix)
            assert done.returncode == 0, done.stderr
    # Another test's pods have the same names: what a gateway remembers of them must be gone.
    time.sleep(1.1)


def test_until_when_a_pod_may_write_what(taken: Taken) -> None:
    """Its registration is its right until it is settled, and not a moment longer (F350)."""
    every = [set(taken.puts())] * 2
    assert taken.may_write() == every
    if taken.role == "agent":
        assert len(taken.assignments()) == 1
    taken.withdraw()
    if taken.role == "agent":
        assert taken.assignments() == []
    assert taken.may_write() == every, "it finishes what it has begun"
    taken.fence()
    assert taken.may_write() == every, "its own transactions compare the fence; these do not"
    watch = taken.clients[0].watch(KEYS.tables)
    assert next(watch).created
    taken.settle()
    before = taken.written()
    # At once, while each gateway remembers what the pod was: both were asked a moment ago.
    assert taken.may_write() == [set(), set()]
    assert [taken.may(lambda c=c: taken.register(c, taken.inc)) for c in taken.clients] == [False, False]
    assert taken.written() == before
    assert KEYS.of(Kind.LOCK) not in before
    # It reads what each pod of the HudiTable's namespace reads, and its watch goes on.
    assert taken.may_read()
    told = (event.kv.key.decode() for answer in watch for event in answer.events)
    assert KEYS.of(Kind.WRITER, taken.inc) in told
    watch.cancel()


def test_nobody_registers_when_the_admission_is_gone(taken: Taken) -> None:
    """A right that registrations give would never end (F351)."""
    taken.withdraw()
    for client in taken.clients:  # as a driver does when it knows its application's id
        taken.register(client, taken.inc)
    before = taken.written()
    for client in taken.clients:
        assert not taken.may(lambda c=client: taken.register(c, taken.next))
        inner = put(KEYS.of(Kind.WRITER, taken.next), taken.pod.registration(taken.next, taken.role))
        assert not taken.may(lambda c=client, i=inner: c.txn(rpc.get(KEYS.of(Kind.GATE)), failure=(i,)))
    assert taken.written() == before
    taken.fence()
    for client in taken.clients:
        assert not taken.may(lambda c=client: taken.register(c, taken.next))


def test_a_read_ends_with_the_tables_gate(taken: Taken) -> None:
    """It names the HudiTable until that is deleted; then a pod that is nobody is told nothing."""
    taken.withdraw()
    taken.fence()
    taken.settle()
    assert taken.may_write() == [set(), set()]
    gate = run(taken.store.read_table(TABLE, "")).gate
    assert gate is not None
    assert run(taken.store.put_gate(TABLE, {"state": "frozen", "table": ""}, expected_mod=gate.mod_revision))
    time.sleep(1.1)  # how long "no role" is remembered
    assert not taken.may_read()


def test_etcd_itself_refuses_the_gateway_what_is_the_operators(etcd: Etcd) -> None:
    """Also within a transaction in a transaction, as the gateway sends those that write."""
    connection = connect(etcd, identity="gateway")
    try:
        for key, allowed in ((KEYS.of(Kind.CLOCK), True), (KEYS.of(Kind.FENCE, "somebody"), False)):
            inner = rpc.messages.RequestOp(request_txn=rpc.txn_request([], [put(key, {"value": "1"})]))
            asked = rpc.txn_request([], [inner])
            if allowed:
                assert connection.call_now(rpc.kv, "Txn", asked, writes=True).succeeded
                continue
            with pytest.raises(Exception, match="permission denied"):
                connection.call_now(rpc.kv, "Txn", asked, writes=True)
            assert not etcd.read(key)
    finally:
        connection.close()
        etcd.ctl("root", "del", KEYS.of(Kind.CLOCK))
