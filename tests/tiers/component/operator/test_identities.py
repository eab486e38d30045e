"""What a pod may do in etcd: the keys of its own table that the contract gives its role, and no
other ones (docs/design/identities.md).

A real etcd with users and roles, the gateway before it, tokens that the test signs; one test has
them from a real API server.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from hudi_contract.keys import TABLES, TIMELINE, Kind, TableKeys, assignment_key, attempt_report, protocol
from hudi_contract.settle import NamedPod, Phase, Proof, Reason, SettledInstant, SettleRecord
from hudi_contract.words import Outcome
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.model.config import EtcdConfig
from tests.support.harness.gateway import AUDIENCE, TIMEOUT, Client, Gateway, Issuer, Pod, api_server, put
from tests.support.harness.servers import Cluster, Etcd, JsonDict, wait_for

PREFIX = "/hudi"
OWN, OTHER = (
    TableKeys(PREFIX, "0123456789abcdef0123456789abcdef"),
    TableKeys(PREFIX, "fedcba9876543210fedcba9876543210"),
)
DRIVER = Pod("ours", "load-7df5b65f-1", "uid-driver")
AGENT = Pod("ours", "hudi-agent-0123456789-4", "uid-agent")
NEIGHBOUR = Pod("ours", "audit", "uid-neighbour")
VICTIM = Pod("theirs", "live-00000000-2", "uid-victim")
INC = {DRIVER: "11111111-aaaa", AGENT: "22222222-bbbb", VICTIM: "33333333-cccc"}
INSTANT = "20261124155500000"
NONCE = "c6f0d3a4-2b1e-4c55-9a77-0a1b2c3d4e5f"
"""What a place in the queue ends with."""
DENIED, UNAUTHENTICATED = grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED


def name(kind: Kind, pod: Pod) -> str:
    """A name that this pod would use for a key of this kind."""
    inc = INC[pod]
    by_kind = {Kind.ADMIT: pod.attempt, Kind.QUEUE: f"{inc}-{NONCE}", Kind.INSTANT: INSTANT, Kind.REQUEST: "service-x"}
    by_kind |= {Kind.REPORT: TIMELINE if pod is AGENT else attempt_report(pod.attempt), Kind.DONE: "create"}
    return "" if kind.single else by_kind.get(kind, inc)


def value(kind: Kind, pod: Pod, role: str) -> JsonDict:
    """What this pod would put there."""
    if kind is Kind.WRITER:
        return pod.registration(INC[pod], role)
    return {"inc": INC[pod], "podUID": pod.uid, "attempt": pod.attempt, "value": INSTANT}


@pytest.fixture(scope="module")
def gateway(etcd: Etcd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    made = Gateway(etcd, tmp_path_factory.mktemp("gateway"))
    made.start()
    try:
        yield made
    finally:
        made.stop()


class Decisions:
    """Keys as the operator puts them, straight into etcd."""

    def __init__(self, etcd: Etcd) -> None:
        pki = etcd.pki
        files = {"ca_file": pki / "ca.crt", "cert_file": pki / "operator.crt", "key_file": pki / "operator.key"}
        named = {name: str(file) for name, file in files.items()}
        self.connection = rpc.Connection(
            EtcdConfig(endpoints=(etcd.endpoint,), prefix=PREFIX, **named), timeout=TIMEOUT
        )

    def do(self, *operations: Any) -> Any:
        return self.connection.call_now(rpc.kv, "Txn", rpc.txn_request([], operations), writes=True)

    def put(self, key: str, told: JsonDict) -> None:
        self.do(put(key, told))

    def read(self, key: str) -> bytes | None:
        found = self.do(rpc.get(key)).responses[0].response_range.kvs
        return bytes(found[0].value) if found else None

    def delete(self, prefix: str) -> None:
        asked = rpc.messages.DeleteRangeRequest(key=prefix.encode(), range_end=rpc.prefix_end(prefix))
        self.do(rpc.messages.RequestOp(request_delete_range=asked))

    def admit(self, keys: TableKeys, pod: Pod, role: str) -> None:
        self.put(keys.of(Kind.ADMIT, pod.attempt), {"attempt": pod.attempt, "role": role, "atMs": 1})


@pytest.fixture(scope="module")
def operator(etcd: Etcd) -> Iterator[Decisions]:
    made = Decisions(etcd)
    yield made
    made.connection.close()


@pytest.fixture(autouse=True)
def keys_of_two_tables(operator: Decisions) -> Iterator[None]:
    """Two tables of two namespaces, each with a gate, a driver, and one key of each kind."""
    for keys, namespace in ((OWN, "ours"), (OTHER, "theirs")):
        operator.put(keys.of(Kind.GATE), {"state": "open", "table": f"{namespace}/flights"})
    operator.admit(OWN, DRIVER, "writer")
    operator.admit(OWN, AGENT, "agent")
    operator.admit(OTHER, VICTIM, "writer")
    for kind in Kind:
        if kind not in (Kind.GATE, Kind.ADMIT):
            operator.put(OTHER.of(kind, name(kind, VICTIM)), value(kind, VICTIM, "writer"))
    yield
    for prefix in (OWN.control, OWN.tables, OTHER.control, OTHER.tables, f"{PREFIX}/control/agents/"):
        operator.delete(prefix)


def refused(what: Callable[[], Any], code: grpc.StatusCode = DENIED) -> str:
    """The words with which a call is refused."""
    with pytest.raises(grpc.RpcError) as error:
        what()
    assert error.value.code() is code, error.value
    return str(error.value.details())


def register(client: Client, pod: Pod, role: str, keys: TableKeys = OWN) -> None:
    lease = client.lease()
    inc = INC[pod]
    answer = client.txn(
        put(keys.of(Kind.WRITER, inc), pod.registration(inc, role)),
        put(keys.of(Kind.ALIVE, inc), {"inc": inc, "n": 1}, lease=lease),
        compare=(rpc.exists(keys.of(Kind.ADMIT, pod.attempt)), rpc.version_is(keys.of(Kind.FENCE, inc), 0)),
        failure=(rpc.get(keys.of(Kind.FENCE, inc)),),
    )
    assert answer.succeeded


@pytest.fixture
def driver(gateway: Gateway) -> Iterator[Client]:
    client = gateway.pod(DRIVER)
    register(client, DRIVER, "writer")
    yield client
    client.give_back()


@pytest.fixture
def agent(gateway: Gateway) -> Iterator[Client]:
    client = gateway.pod(AGENT)
    register(client, AGENT, "agent")
    yield client
    client.give_back()


# ---- another table


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("role", ["writer", "agent"])
def test_no_key_of_another_table(operator: Decisions, driver: Client, agent: Client, kind: Kind, role: str) -> None:
    """Neither read nor put nor deleted, in either branch of a transaction, whatever it compares."""
    client, key = driver if role == "writer" else agent, OTHER.of(kind, name(kind, VICTIM))
    before = operator.read(key)
    assert before
    refused(lambda: client.get(key))
    refused(lambda: client.put(key, value(kind, VICTIM, "writer")))
    refused(lambda: client.txn(rpc.delete(key)))
    refused(lambda: client.txn(failure=(put(key, {}),), compare=(rpc.exists(OWN.of(Kind.GATE)),)))
    refused(lambda: client.txn(failure=(rpc.get(key),)))
    refused(lambda: client.txn(rpc.get(OWN.of(Kind.GATE)), compare=(rpc.exists(key),)))
    assert operator.read(key) == before


@pytest.mark.parametrize("kind", list(Kind))
def test_an_attempt_of_another_name_space_and_the_same_name_is_another_one(gateway: Gateway, kind: Kind) -> None:
    """The name of a pod is its namespace's to give."""
    twin = gateway.pod(replace(DRIVER, namespace="theirs"))
    refused(lambda: twin.put(OWN.of(kind, name(kind, DRIVER)), value(kind, DRIVER, "writer")))
    refused(lambda: twin.get(OWN.of(kind, name(kind, DRIVER))))


# ---- its own table: what the contract says


def writers(kind: Kind) -> set[str]:
    """The roles that write this kind, from protocol.json."""
    told = set(str(protocol()["keys"][kind]["writer"]).split("+"))
    return {"writer", "agent"} if "jvm" in told else told & {"agent"}


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("role", ["writer", "agent"])
def test_a_role_puts_the_keys_that_the_contract_gives_it(driver: Client, agent: Client, kind: Kind, role: str) -> None:
    client, pod = (driver, DRIVER) if role == "writer" else (agent, AGENT)
    key, told = OWN.of(kind, name(kind, pod)), value(kind, pod, role)
    if role in writers(kind) and kind is not Kind.SETTLE:  # of which an agent changes some fields
        client.put(key, told, lease=client.lease() if protocol()["keys"][kind].get("lease") else 0)
        assert client.get(key) == told
    else:
        refused(lambda: client.put(key, told))
        refused(lambda: client.txn(rpc.delete(key)))
        refused(lambda: client.txn(failure=(put(key, told),)))
        refused(lambda: client.txn(failure=(rpc.delete(key),)))


def test_an_agent_changes_of_a_settle_record_what_it_did(operator: Decisions, agent: Client) -> None:
    """It begins none, and names no pods and proofs in one, which the operator believes (F529)."""
    key = OWN.of(Kind.SETTLE, INC[VICTIM])
    record = SettleRecord.of(inc=INC[VICTIM], reason=Reason.LEASE_GONE, now_ms=1, pod="live-1", pod_uid="uid-live")
    handed = record.moved(Phase.RollingBack, now_ms=2).but(instants={INSTANT: SettledInstant(action="commit")})

    def change(told: SettleRecord, seen: int) -> bool:
        return bool(agent.txn(put(key, told.to_json()), compare=(rpc.mod_is(key, seen),)).succeeded)

    for seen in (0, 1):
        refused(lambda seen=seen: change(handed, seen))
    operator.put(key, handed.to_json())
    mod = agent.txn(rpc.get(key)).responses[0].response_range.kvs[0].mod_revision
    refused(lambda: agent.put(key, handed.to_json()))
    refused(lambda: agent.txn(rpc.delete(key)))
    forged = {
        "pods": handed.with_pods({VICTIM.uid: NamedPod(name="live-00000000-2", evidence=True)}),
        "proofs": handed.with_proofs({"uid-live": Proof(kind="PodTerminated")}),
        "podUID": handed.but(pod_uid=VICTIM.uid),
        "phase": handed.moved(Phase.Settled, now_ms=3),
    }
    for field, told in forged.items():
        assert field in refused(lambda told=told: change(told, mod))
    done = handed.but(instants={INSTANT: SettledInstant(action="commit", outcome=Outcome.ROLLED_BACK)})
    swept = done.moved(Phase.Swept, now_ms=3)
    assert not change(swept, mod - 1)
    assert change(swept, mod)
    assert agent.get(key) == swept.to_json()


def test_the_contract_divides_the_keys() -> None:
    """The families that decide over life and death are not a writer's."""
    assert {kind for kind in Kind if kind.range == TABLES and "writer" not in writers(kind)} == {Kind.SETTLE, Kind.DONE}


def test_a_writer_reports_on_its_own_attempt_only(driver: Client, agent: Client) -> None:
    for report in ("timeline", "callback", attempt_report("ours.other-00000000-1")):
        refused(lambda report=report: driver.put(OWN.of(Kind.REPORT, report), {}))
    agent.put(OWN.of(Kind.REPORT, "timeline"), {})


def test_a_registration_names_the_pod_that_made_it(driver: Client) -> None:
    """What the operator deletes pods by: nobody names another pod, role or attempt."""
    true = DRIVER.registration("44444444-dddd", "writer")
    for forged in (
        {"podUID": VICTIM.uid},
        {"attempt": "kube-system.coredns-0", "namespace": "kube-system", "pod": "coredns-0"},
        {"role": "agent"},
        {"inc": "another"},
    ):
        refused(lambda forged=forged: driver.put(OWN.of(Kind.WRITER, "44444444-dddd"), true | forged))
    driver.put(OWN.of(Kind.WRITER, "44444444-dddd"), true)


def test_whose_heartbeat_whose_place_whose_lock_whose_instant(driver: Client, agent: Client) -> None:
    """Two pods of one table: what one has put is not the other's to replace or delete."""
    mine, theirs = INC[DRIVER], INC[AGENT]
    agent.put(OWN.of(Kind.QUEUE, f"{theirs}-{NONCE}"), {"inc": theirs}, lease=agent.lease())
    taken = agent.txn(put(OWN.of(Kind.LOCK), {"inc": theirs, "podUID": AGENT.uid, "attempt": AGENT.attempt}))
    held = rpc.created_at(OWN.of(Kind.LOCK), taken.header.revision)
    agent.put(OWN.of(Kind.INSTANT, INSTANT), {"inc": theirs})
    for kind, called in (
        (Kind.WRITER, theirs),
        (Kind.ALIVE, theirs),
        (Kind.QUEUE, f"{theirs}-{NONCE}"),
        (Kind.INSTANT, INSTANT),
    ):
        refused(lambda kind=kind, called=called: driver.put(OWN.of(kind, called), value(kind, AGENT, "agent")))
        refused(lambda kind=kind, called=called: driver.txn(rpc.delete(OWN.of(kind, called))))
    refused(lambda: driver.put(OWN.of(Kind.INSTANT, INSTANT), {"inc": mine}))
    refused(lambda: driver.put(OWN.of(Kind.LOCK), {"inc": theirs, "podUID": DRIVER.uid, "attempt": DRIVER.attempt}))
    refused(lambda: driver.txn(rpc.delete(OWN.of(Kind.LOCK)), compare=(held,)))
    refused(lambda: agent.txn(rpc.delete(OWN.of(Kind.LOCK))))
    assert agent.txn(rpc.delete(OWN.of(Kind.LOCK)), compare=(held,)).succeeded


def test_the_life_of_a_lock(driver: Client) -> None:
    """acquire, record, publish, release, clean exit: each transaction of a writer goes through."""
    inc, lock, gate = INC[DRIVER], OWN.of(Kind.LOCK), OWN.of(Kind.GATE)
    ticket = OWN.of(Kind.QUEUE, f"{inc}-{NONCE}")
    lease = driver.lease()
    driver.put(ticket, {"inc": inc}, lease=lease)
    told = {"inc": inc, "podUID": DRIVER.uid, "attempt": DRIVER.attempt}
    compare = (rpc.version_is(lock, 0), rpc.version_is(OWN.of(Kind.FENCE, inc), 0), rpc.exists(gate))
    taken = driver.txn(put(lock, told), rpc.get(OWN.of(Kind.CLOCK)), rpc.delete(ticket), compare=compare)
    assert taken.succeeded
    held = rpc.created_at(lock, taken.header.revision)
    instant, clock = OWN.of(Kind.INSTANT, INSTANT), OWN.of(Kind.CLOCK)
    assert driver.txn(put(instant, {"inc": inc}), put(clock, {"value": INSTANT}), compare=(held,)).succeeded
    assert driver.txn(put(clock, {"value": INSTANT}), compare=(held, rpc.exists(instant))).succeeded
    assert driver.txn(rpc.delete(lock), rpc.delete(instant), compare=(held,)).succeeded
    alive, writer = OWN.of(Kind.ALIVE, inc), OWN.of(Kind.WRITER, inc)
    assert driver.txn(rpc.delete(alive), rpc.delete(writer)).succeeded
    driver.revoke(lease)


# ---- ranges, streams, leases


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("/hudi/", b"/hudi0"),
        ("/hudi/tables/", b"/hudi/tables0"),
        (OWN.tables, rpc.prefix_end(OTHER.tables)),
        (OWN.tables, b"\0"),
        ("/hudi/control/agents/", b"/hudi/control/agents0"),
        ("/other/", b"/other0"),
        ("\0", b"\0"),
    ],
)
def test_a_range_is_of_one_table(driver: Client, start: str, end: bytes) -> None:
    asked = rpc.messages.RangeRequest(key=start.encode(), range_end=end)
    refused(lambda: driver.txn(rpc.messages.RequestOp(request_range=asked)))
    request = rpc.messages.WatchCreateRequest(key=start.encode(), range_end=end)
    watched = rpc.messages.WatchRequest(create_request=request)
    refused(lambda: next(iter(rpc.watches(driver.channel).Watch(iter([watched]), timeout=5, metadata=driver.metadata))))


def test_nobody_deletes_a_range(driver: Client, agent: Client) -> None:
    asked = rpc.messages.DeleteRangeRequest(key=OWN.tables.encode(), range_end=rpc.prefix_end(OWN.tables))
    for client in (driver, agent):
        refused(lambda client=client: client.txn(rpc.messages.RequestOp(request_delete_range=asked)))


def test_a_transaction_in_a_transaction_is_refused(driver: Client) -> None:
    inner = rpc.txn_request([], [put(OTHER.of(Kind.LOCK), {})])
    refused(lambda: driver.txn(rpc.messages.RequestOp(request_txn=inner)))


def test_a_watch_sees_its_own_table(driver: Client, operator: Decisions) -> None:
    answers = driver.watch(OWN.tables)
    assert next(answers).created
    operator.put(OWN.of(Kind.CLOCK), {"value": INSTANT})
    assert next(answers).events[0].kv.key.decode() == OWN.of(Kind.CLOCK)
    answers.cancel()
    refused(lambda: next(driver.watch(OTHER.tables)))


def test_a_watch_begins_now(driver: Client, operator: Decisions) -> None:
    """etcd reads no history for a pod; what our own clients ask for passes."""
    m, lock = rpc.messages, OWN.of(Kind.LOCK).encode()
    for asked in (m.WatchCreateRequest(key=lock, start_revision=1), m.WatchCreateRequest(key=lock, prev_kv=True)):
        requests = iter([m.WatchRequest(create_request=asked)])
        stream = rpc.watches(driver.channel).Watch(requests, timeout=TIMEOUT, metadata=driver.metadata)
        assert "begins now" in refused(lambda stream=stream: next(iter(stream)))


def test_what_the_clients_of_pods_ask_passes(driver: Client) -> None:
    """A range with the limit of the lock module, its largest look, and eight ranges at most."""

    def asked() -> Any:
        end = rpc.prefix_end(OWN.tables)
        return rpc.messages.RequestOp(
            request_range=rpc.messages.RangeRequest(key=OWN.tables.encode(), range_end=end, limit=10_000)
        )

    assert driver.txn(asked()).responses[0].response_range.kvs
    look = [rpc.get(OWN.of(kind)) for kind in (Kind.GATE, Kind.LOCK, Kind.CLOCK)]
    look += [rpc.get(OWN.of(Kind.FENCE, INC[DRIVER])), rpc.get(OWN.of(Kind.ALIVE, INC[DRIVER])), asked()]
    assert len(driver.txn(*look).responses) == len(look)
    assert len(driver.txn(*(asked() for _ in range(8))).responses) == 8
    said = refused(lambda: driver.txn(*(asked() for _ in range(9))), grpc.StatusCode.INVALID_ARGUMENT)
    assert "at most 8 ranges" in said


def test_leases_are_the_pods_own(gateway: Gateway, driver: Client, etcd: Etcd, operator: Decisions) -> None:
    operator.do(rpc.delete(OTHER.of(Kind.FENCE, INC[VICTIM])))
    victim = gateway.pod(VICTIM)
    register(victim, VICTIM, "writer", OTHER)
    theirs = victim.lease()
    operators = int(etcd.ctl("operator", "lease", "grant", "300").stdout.split()[1], 16)
    for lease in (theirs, operators):
        refused(lambda lease=lease: driver.revoke(lease))
        refused(lambda lease=lease: driver.keep_alive(lease))
        refused(lambda lease=lease: driver.put(OWN.of(Kind.ALIVE, INC[DRIVER]), {}, lease=lease))
    assert victim.keep_alive(theirs) == 60
    own = driver.lease(30)
    assert driver.keep_alive(own) == 30
    driver.put(OWN.of(Kind.ALIVE, INC[DRIVER]), {"n": 2}, lease=own)
    driver.revoke(own)
    assert driver.get(OWN.of(Kind.ALIVE, INC[DRIVER])) is None


def test_only_the_calls_of_the_protocol_are_offered(driver: Client) -> None:
    unknown = grpc.StatusCode.UNIMPLEMENTED
    m = rpc.messages
    refused(lambda: driver.call(rpc.kv, "Put", m.PutRequest(key=OWN.of(Kind.CLOCK).encode(), value=b"{}")), unknown)
    refused(lambda: driver.call(rpc.kv, "DeleteRange", m.DeleteRangeRequest(key=b"/")), unknown)
    refused(lambda: driver.call(rpc.kv, "Compact", m.CompactionRequest(revision=1)), unknown)
    refused(lambda: driver.call(rpc.auth, "AuthDisable", m.AuthDisableRequest()), unknown)
    refused(lambda: driver.call(rpc.leases, "LeaseTimeToLive", m.LeaseTimeToLiveRequest(ID=1)), unknown)


# ---- agents


def test_an_agent_reads_its_assignments_and_no_others(operator: Decisions, agent: Client, driver: Client) -> None:
    mine, others = "hudi-agent-0123456789", "hudi-agent-aaaaaaaaaa"
    operator.put(assignment_key(PREFIX, mine, OWN.table_id), {"T": OWN.table_id, "table": "ours/flights"})
    operator.put(assignment_key(PREFIX, others, OTHER.table_id), {"T": OTHER.table_id, "table": "theirs/flights"})
    found = agent.txn(rpc.get_prefix(f"/hudi/control/agents/{mine}/")).responses[0].response_range.kvs
    assert [kv.key.decode().rpartition("/")[2] for kv in found] == [OWN.table_id]
    refused(lambda: agent.txn(rpc.get_prefix(f"/hudi/control/agents/{others}/")))
    refused(lambda: driver.txn(rpc.get_prefix(f"/hudi/control/agents/{mine}/")))
    refused(lambda: agent.put(assignment_key(PREFIX, mine, OTHER.table_id), {}))


def test_a_pod_that_is_called_like_another_namespaces_agent_learns_nothing(
    operator: Decisions, gateway: Gateway
) -> None:
    agent = "hudi-agent-aaaaaaaaaa"
    operator.put(assignment_key(PREFIX, agent, OTHER.table_id), {"T": OTHER.table_id, "table": "theirs/flights"})
    namesake = gateway.pod(Pod("ours", f"{agent}-1", "uid-namesake"))
    refused(lambda: namesake.txn(rpc.get_prefix(f"/hudi/control/agents/{agent}/")))


def test_an_agent_is_granted_and_withdrawn_with_its_admission(
    operator: Decisions, gateway: Gateway, agent: Client
) -> None:
    """Without a change of users or roles: the admission is the grant."""
    refused(lambda: agent.put(OTHER.of(Kind.CLOCK), {"value": INSTANT}))
    operator.admit(OTHER, AGENT, "agent")
    time.sleep(1.1)  # how long "not admitted" is remembered
    agent.put(OTHER.of(Kind.CLOCK), {"value": INSTANT})
    written = operator.read(OTHER.of(Kind.CLOCK))
    # It has not registered there: nothing but the admission gives it a right.
    operator.do(rpc.delete(OTHER.of(Kind.ADMIT, AGENT.attempt)))
    refused(lambda: agent.put(OTHER.of(Kind.CLOCK), {"value": f"{INSTANT[:-1]}1"}))
    assert operator.read(OTHER.of(Kind.CLOCK)) == written


# ---- tokens


def test_without_a_good_token_nothing(gateway: Gateway) -> None:
    key, issuer = OWN.of(Kind.GATE), gateway.issuer
    now = int(time.time())
    stranger = Issuer()
    head, body, _ = issuer.token(DRIVER).split(".")
    none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "one"}).encode()).rstrip(b"=").decode()
    for bad in (
        "",
        "nonsense",
        issuer.token(DRIVER, aud=["https://kubernetes.default.svc"]),
        issuer.token(DRIVER, iss="https://other"),
        issuer.token(DRIVER, exp=now - 60),
        issuer.token(DRIVER, nbf=now + 600),
        issuer.token(DRIVER, exp=now + 3 * 3600),
        issuer.token(DRIVER, **{"kubernetes.io": {"namespace": "ours", "serviceaccount": {"name": "hudi-driver"}}}),
        stranger.token(DRIVER),
        stranger.token(DRIVER, header={"jwk": stranger.jwk()}),
        f"{head}.{body}.",
        f"{none}.{body}.",
    ):
        client = gateway.client(bad)
        refused(lambda client=client: client.get(key), UNAUTHENTICATED)
        refused(client.lease, UNAUTHENTICATED)


def test_a_pod_of_the_tables_namespace_reads_and_writes_nothing(gateway: Gateway, driver: Client) -> None:
    """As the audit does."""
    reader = gateway.pod(NEIGHBOUR)
    assert reader.get(OWN.of(Kind.GATE))
    assert reader.txn(rpc.get_prefix(OWN.tables)).responses[0].response_range.kvs
    refused(lambda: reader.get(OTHER.of(Kind.GATE)))
    for kind in Kind:
        refused(lambda kind=kind: reader.put(OWN.of(kind, name(kind, DRIVER)), value(kind, DRIVER, "writer")))


def test_what_a_pod_has_registered_as_outlives_its_admission_and_the_gateway(
    etcd: Etcd, operator: Decisions, tmp_path: Path
) -> None:
    """Another replica, or this one after a restart, knows the pod by its registration."""
    first, second = Gateway(etcd, tmp_path), Gateway(etcd, tmp_path)
    second.issuer = first.issuer
    second.tell_keys(first.issuer)
    first.start()
    second.start()
    try:
        register(first.pod(DRIVER), DRIVER, "writer")
        operator.do(rpc.delete(OWN.of(Kind.ADMIT, DRIVER.attempt)))
        client = second.pod(DRIVER)
        client.put(OWN.of(Kind.ALIVE, INC[DRIVER]), {"n": 2}, lease=client.lease())
        refused(lambda: client.put(OWN.of(Kind.SETTLE, INC[DRIVER]), {}))
        refused(lambda: second.pod(replace(DRIVER, uid="uid-later")).put(OWN.of(Kind.CLOCK), {}))
    finally:
        first.stop()
        second.stop()


def test_a_new_key_of_the_issuer_is_learnt_and_its_absence_survived(etcd: Etcd, tmp_path: Path) -> None:
    gateway = Gateway(etcd, tmp_path)
    gateway.start()
    try:
        old, new = gateway.pod(DRIVER), Issuer("two")
        gateway.tell_keys(gateway.issuer, new)
        client = gateway.client(new.token(DRIVER))

        def known() -> bool:
            try:
                return client.get(OWN.of(Kind.GATE)) is not None
            except grpc.RpcError as error:
                if error.code() not in (grpc.StatusCode.UNAVAILABLE, UNAUTHENTICATED):
                    raise
                return False

        wait_for("the new key is known", known, seconds=30)
        gateway.key_set.unlink()
        assert client.get(OWN.of(Kind.GATE))
        assert old.get(OWN.of(Kind.GATE))
    finally:
        gateway.stop()


# ---- limits


def test_a_table_that_fills_up_stops_itself(etcd: Etcd, operator: Decisions, tmp_path: Path) -> None:
    limits = ("-max-bytes-per-second=1000", "-max-burst-bytes=200000", "-max-watches=2", "-max-keys=50")
    gateway = Gateway(etcd, tmp_path, *limits)
    gateway.start()
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    try:
        operator.do(rpc.delete(OTHER.of(Kind.FENCE, INC[VICTIM])))
        noisy, quiet = gateway.pod(DRIVER), gateway.pod(VICTIM)
        register(noisy, DRIVER, "writer")
        report, big = OWN.of(Kind.REPORT, attempt_report(DRIVER.attempt)), {"x": "y" * 60_000}
        refused(lambda: noisy.put(report, {"x": "y" * 70_000}), grpc.StatusCode.INVALID_ARGUMENT)
        for _ in range(3):
            noisy.put(report, big)
        assert OWN.table_id in refused(lambda: noisy.put(report, big), exhausted)
        register(quiet, VICTIM, "writer", OTHER)
        watches = [noisy.watch(OWN.tables) for _ in range(2)]
        assert all(next(watch).created for watch in watches)
        refused(lambda: next(noisy.watch(OWN.tables)), exhausted)
        watches[0].cancel()

        def watched() -> bool:
            try:
                return bool(next(noisy.watch(OWN.tables)).created)
            except grpc.RpcError as error:
                if error.code() is not exhausted:
                    raise
                return False

        wait_for("a watch is free", watched)
        for number in range(60):
            operator.put(OTHER.of(Kind.INSTANT, f"202611241555{number:05}"), {"inc": "x"})
        clock = OTHER.of(Kind.CLOCK)
        time.sleep(10.5)  # how often keys are counted
        refused(lambda: quiet.put(clock, {"value": INSTANT}), exhausted)
        noisy.put(OWN.of(Kind.CLOCK), {"value": INSTANT})
        assert 'hudi_gateway_refused_total{code="ResourceExhausted"}' in str(gateway.metrics())
        # Connections are counted, so the program listens where they are bounded.
        assert "hudi_gateway_connections 0" not in str(gateway.metrics())
        assert "hudi_gateway_connections " in str(gateway.metrics())
    finally:
        gateway.stop()


def test_answers_that_are_not_read_are_those_of_one_table(etcd: Etcd, operator: Decisions, tmp_path: Path) -> None:
    """What a pod asks for and does not read takes its own table's memory of the gateway."""
    gateway = Gateway(etcd, tmp_path, "-max-answer-bytes=4000000", "-max-memory-bytes=16000000")
    gateway.start()
    exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
    try:
        operator.do(rpc.delete(OTHER.of(Kind.FENCE, INC[VICTIM])))
        for number in range(50):
            operator.put(OWN.of(Kind.DONE, f"large-{number}"), {"x": "y" * 60_000})
        hears, quiet = gateway.pod(DRIVER), gateway.pod(VICTIM)
        register(quiet, VICTIM, "writer", OTHER)
        # A connection of its own, which takes nothing that was not asked for.
        credentials = grpc.ssl_channel_credentials((etcd.pki / "ca.crt").read_bytes())
        options = {"grpc.use_local_subchannel_pool": 1, "grpc.http2.bdp_probe": 0, "grpc.http2.lookahead_bytes": 65535}
        deaf = grpc.secure_channel(gateway.endpoint.removeprefix("https://"), credentials, tuple(options.items()))
        everything = rpc.txn_request([], [rpc.get_prefix(OWN.tables)], [])
        assert len(hears.call(rpc.kv, "Txn", everything).responses[0].response_range.kvs) >= 50
        asking = deaf.unary_stream(
            "/etcdserverpb.KV/Txn",
            request_serializer=rpc.messages.TxnRequest.SerializeToString,
            response_deserializer=bytes,
        )
        calls = [asking(everything, metadata=hears.metadata) for _ in range(5)]
        time.sleep(2)
        assert any(call.is_active() for call in calls)
        said = refused(lambda: hears.call(rpc.kv, "Txn", everything), exhausted)
        assert f"table {OWN.table_id} has reached its limit of bytes of answers at once (4000000, rule memory)" in said
        assert quiet.get(OTHER.of(Kind.GATE))
        deaf.close()

        def read() -> bool:
            try:
                return bool(hears.call(rpc.kv, "Txn", everything).responses)
            except grpc.RpcError as error:
                if error.code() is not exhausted:
                    raise
                return False

        wait_for("what was not read is given up", read)
    finally:
        gateway.stop()


# ---- a real API server


def test_tokens_of_a_real_api_server(cluster: Cluster, etcd: Etcd, operator: Decisions, tmp_path: Path) -> None:
    """The kubelet asks for them as kubectl does here: bound to a pod, for our audience."""
    namespace = "identities"
    cluster.kubectl("create", "namespace", namespace)
    wait_for("account", lambda: cluster.request("GET", f"/api/v1/namespaces/{namespace}/serviceaccounts/default"))
    spec = {"containers": [{"name": "c", "image": "none"}]}
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": DRIVER.name}, "spec": spec}
    uid = cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods", made)["metadata"]["uid"]
    pod = Pod(namespace, DRIVER.name, uid)

    def token(*more: str) -> str:
        return cluster.kubectl("create", "token", "default", "-n", namespace, *more).strip()

    bound = ("--bound-object-kind=Pod", f"--bound-object-name={pod.name}", f"--audience={AUDIENCE}")
    gateway = Gateway(etcd, tmp_path, *api_server(cluster, tmp_path), issuer=False)
    gateway.start()
    try:
        operator.admit(OWN, pod, "writer")
        client = gateway.client(token(*bound))
        client.put(OWN.of(Kind.CLOCK), {"value": INSTANT})
        refused(lambda: client.get(OTHER.of(Kind.GATE)))
        refused(lambda: gateway.client(token(*bound[:2])).get(OWN.of(Kind.GATE)), UNAUTHENTICATED)
        refused(lambda: gateway.client(token(bound[2])).get(OWN.of(Kind.GATE)), UNAUTHENTICATED)
    finally:
        gateway.stop()
