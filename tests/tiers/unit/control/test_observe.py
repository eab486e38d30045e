"""What one look reads, and in which order: another operator may act between two of its reads."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.records import Stored
from hudi_operator.api.spec import TableSpec
from hudi_operator.control.applied_objects import AppliedObjects
from hudi_operator.control.index import TableIndex
from hudi_operator.control.memory import Memory
from hudi_operator.control.observe import SPARK_EXECUTORS
from hudi_operator.control.sibling_tables import read_sibling_tables
from hudi_operator.control.timers import Timers
from hudi_operator.control.wide_looks import WIDE_SECONDS
from hudi_operator.model.config import ConsentBindingConfig, ConsentConfig, OperatorConfig
from hudi_operator.model.facts import EtcdFacts, NodeFacts, Observed, PodFacts, PodName
from hudi_operator.model.ports import Conflict, Fatal
from hudi_operator.plan.fencing import collection
from hudi_operator.plan.writers import executors_missing
from tests.support import observe_ports
from tests.support.observe_ports import TABLE, Ports, observer

JsonDict = dict[str, Any]


def writer(*pods: str) -> JsonDict:
    attempts = [{"number": n, "pod": pod} for n, pod in enumerate(pods, 1)]
    return {
        "metadata": {"namespace": "ns", "name": "load"},
        "spec": {"tableRef": {"name": "flights"}},
        "status": {"attempts": attempts},
    }


def look(facts: EtcdFacts, *lists: list[JsonDict]) -> Observed:
    ports: Any = Ports(facts, *lists)
    return asyncio.run(observer(ports).observe(("ns", "flights")))


ADMITTED = EtcdFacts(revision=1, cluster_id="c", admits={"ns.load-2": Stored({"role": "writer"}, 1, 1)})
REPORTED = EtcdFacts(revision=1, cluster_id="c", reports={"attempt/ns.load-2": Stored({}, 1, 1)})


@pytest.mark.parametrize("facts", [ADMITTED, REPORTED])
def test_an_attempt_that_began_while_the_table_was_read_is_not_taken_for_nobodys(facts: EtcdFacts) -> None:
    """I11: the writers were read before another operator wrote attempt 2 into status
    and admitted it.
    """
    with pytest.raises(Conflict, match=r"ns\.load-2"):
        look(facts, [writer("load-1")], [writer("load-1", "load-2")])


def test_attempts_of_another_table_on_the_same_path_have_not_begun_now() -> None:
    """Two HudiTables with one path see the same keys in etcd.

    The second one must get as far as saying so.
    """
    other = {**writer("load-1", "load-2"), "spec": {"tableRef": {"name": "first"}}}
    assert look(ADMITTED, [other], [other]).writers == ()


def test_what_no_list_names_is_nobodys() -> None:
    """The writer of an admission is gone: also the list from after the read of etcd does
    not name it.
    """
    assert look(ADMITTED, [writer("load-1")], [writer("load-1")]).etcd == ADMITTED


def test_one_list_is_enough_when_it_names_all() -> None:
    agent = {"ns.agent-1": Stored({"role": "agent"}, 1, 1)}
    facts = EtcdFacts(revision=1, cluster_id="c", admits={**ADMITTED.admits, **agent})
    assert look(facts, [writer("load-1", "load-2")]).etcd == facts


def test_tables_at_the_folders_of_event_logs_are_told() -> None:
    """F270: also one that the writer neither writes nor reads."""
    logging = writer()
    logging["spec"] |= {"source": {"sql": {"query": "SELECT 1"}}, "sparkConf": {"spark.eventLog.dir": "s3a://lake/x/l"}}
    other = copy.deepcopy(TABLE)
    other["metadata"] |= {"name": "other", "uid": "o"}
    other["spec"] |= {"path": "s3a://lake/x"}
    ports: Any = Ports(EtcdFacts(revision=1, cluster_id="c"), [logging])
    index = TableIndex("image")
    index.put(other)
    found = asyncio.run(observer(ports, index=index).observe(("ns", "flights")))
    assert found.tables_at_event_logs == {"s3a://lake/x/l": ("ns/other",)}


@pytest.mark.parametrize("allowed", [True, False], ids=["it may", "it may not"])
def test_one_that_may_not_use_the_path_takes_no_turn(*, allowed: bool) -> None:
    """F651: it made the owner of the path give its gate up. A configuration is read again."""
    evil = copy.deepcopy(TABLE)
    evil["metadata"] |= {"namespace": "evil", "name": "x", "uid": "9"}
    ports: Any = Ports(EtcdFacts(revision=1, cluster_id="c"), [], [], [])
    index, prefixes = TableIndex("image"), {"ns": ("s3a://lake",), "evil": ("s3a://lake" if allowed else "s3a://evil",)}
    index.put(TABLE)
    index.put(evil)
    made = observer(ports, index=index)
    assert asyncio.run(made.observe(("ns", "flights"))).tables_on_path == ("evil/x",)
    made.configure(OperatorConfig(path_prefixes=prefixes))
    found = asyncio.run(made.observe(("ns", "flights")))
    assert found.tables_on_path == (("evil/x",) if allowed else ())
    glanced = asyncio.run(made.glance(("ns", "flights")))
    assert glanced is not None
    assert glanced.tables_on_path == found.tables_on_path


class Closed(Ports):
    """Secrets are not to be read; ``asked``: whose annotations were."""

    closed = True

    def __init__(self, spec: JsonDict) -> None:
        super().__init__(EtcdFacts(revision=1, cluster_id="c"), *([] for _ in range(9)))
        self.asked: list[str] = []
        self.table = {**TABLE, "spec": {**TABLE["spec"], **spec}}

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        return self.table if kind == naming.TABLE_KIND else None

    async def annotations(self, kind: str, namespace: str, name: str) -> dict[str, str] | None:
        self.asked.append(f"{kind}/{name}")
        if self.closed and kind == "Secret":
            raise Fatal(f'secrets "{name}" is forbidden')
        return {"hudioperator.io/allowed-tables": "*"} if name in ("lake", "irsa") else None


BINDING = ConsentBindingConfig("release-consent", "release", "hudi-operator")
BOTH = {"storage": {"secretRefs": [{"name": "lake", "as": "S3"}], "serviceAccountName": "irsa"}}


def closed_look(ports: Closed, applied: AppliedObjects, **config: Any) -> Observed:
    made = observer(ports, config=OperatorConfig(consent_binding=BINDING, **config), applied=applied)
    return asyncio.run(made.observe(("ns", "flights")))


def test_secrets_that_cannot_be_read_are_told_and_end_no_look() -> None:
    """F403: dead writers of the table are settled meanwhile."""
    ports, consent = Closed(BOTH), ConsentConfig("Required", "Required")
    found = closed_look(ports, AppliedObjects(), consent=consent)
    assert found.secrets_unreadable
    assert {name.kind for name in found.consents} == {"ServiceAccount"}
    ports.closed = False
    found = closed_look(ports, AppliedObjects(), consent=consent)
    assert not found.secrets_unreadable
    assert {name.kind for name in found.consents} == {"ServiceAccount", "Secret"}


@pytest.mark.parametrize("closed", ["Secret", "ServiceAccount"])
def test_without_a_binding_to_make_it_ends_no_look_either(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """F432: in a namespace of `watchNamespaces` the chart gives it, and it can be missing."""
    ports: Any = Closed(BOTH)
    read = Closed.annotations

    async def annotations(self: Closed, kind: str, namespace: str, name: str) -> Any:
        if kind == closed:
            raise Fatal("forbidden")
        self.closed = False
        return await read(self, kind, namespace, name)

    monkeypatch.setattr(Closed, "annotations", annotations)
    config = OperatorConfig(consent=ConsentConfig("Required", "Required"))
    found = asyncio.run(observer(ports, config=config).observe(("ns", "flights")))
    assert found.etcd is not None
    assert found.secrets_unreadable == (closed == "Secret")
    assert {name.kind for name in found.consents} == {"Secret", "ServiceAccount"} - {closed}


def test_where_no_secret_is_named_the_right_is_asked_for_once() -> None:
    """F403: keys of attempts are read as well. Not at each look; anew when it is doubted."""
    ports, applied = Closed({}), AppliedObjects()
    assert closed_look(ports, applied).secrets_unreadable
    assert closed_look(ports, applied).secrets_unreadable
    assert ports.asked == ["Secret/release-consent"] * 2
    ports.closed = False
    for _ in range(3):
        assert not closed_look(ports, applied).secrets_unreadable
    assert len(ports.asked) == 3
    applied.forget("ns")
    assert not closed_look(ports, applied).secrets_unreadable
    assert len(ports.asked) == 4


def test_a_table_that_cannot_be_read_whole_is_looked_at_in_etcd_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """F69: under its id, with the agent that status tells."""
    asked: list[tuple[str, str]] = []

    async def read_table(self: Ports, table_id: str, agent: str, *_others: Any) -> EtcdFacts:
        asked.append((table_id, agent))
        return self._facts

    whole = TableSpec.from_object(TABLE)
    torn = {
        **TABLE,
        "spec": {**TABLE["spec"], "storage": "none"},
        "status": {"tableId": whole.table_id, "agent": "hudi-agent-x"},
    }
    monkeypatch.setattr(Ports, "read_table", read_table)
    monkeypatch.setitem(globals(), "TABLE", torn)
    monkeypatch.setattr(observe_ports, "TABLE", torn)
    found = look(EtcdFacts(revision=1, cluster_id="c"), [])
    assert found.etcd is not None
    assert set(asked) == {(whole.table_id, "hudi-agent-x")}
    index = TableIndex("image")
    index.put(torn)
    assert index.of_id(whole.table_id) == index.of_agent("ns", "hudi-agent-x") == {("ns", "flights")}


AGENT_LABELS = {**naming.MANAGED, naming.LABEL_ROLE: naming.ROLE_AGENT, naming.LABEL_AGENT: "hudi-agent-a"}
ENDED = PodFacts("ns", "hudi-agent-a-1", "dead", AGENT_LABELS, "Failed", "n", False, (naming.EVIDENCE_FINALIZER,), ())
SIBLINGS = [
    {
        "metadata": {"namespace": "ns", "name": f"t{n}", "uid": f"u{n}"},
        "spec": {"path": f"s3a://lake/t{n}", "recordKeyFields": ["id"]},
    }
    for n in range(40)
]


class Tables:
    """Both ports: HudiTables of a namespace, and ids of those that need the dead agent's pod."""

    def __init__(self, *holding: int) -> None:
        self.holding = {TableSpec.from_object(SIBLINGS[n]).table_id for n in holding}
        self.unreadable = set[str]()
        self.admitting = set[str]()
        self.read: list[str] = []

    async def list_objects(self, kind: str, namespace: str) -> list[JsonDict]:
        return SIBLINGS

    async def read_table(self, table_id: str, agent: str, *_others: Any) -> EtcdFacts:
        self.read.append(table_id)
        if table_id in self.unreadable:
            return EtcdFacts(1, "c", settles={"i": Stored({}, 1, 1, unreadable="no JSON")})
        registered = {"i": Stored({"podUID": "dead"}, 1, 1)} if table_id in self.holding else {}
        admitted = {f"ns.{ENDED.name}": Stored({"role": "agent"}, 1, 1)} if table_id in self.admitting else {}
        return EtcdFacts(1, "c", writers=registered, admits=admitted)

    def needed(self, holders: set[str]) -> frozenset[str] | None:
        self.read.clear()
        ports: Any = self
        found = asyncio.run(
            read_sibling_tables(
                ("ns", "x"),
                [ENDED],
                kubernetes=ports,
                etcd=ports,
                agent_of=lambda table, spec: spec.agent_name("i"),
                holders=holders,
            )
        )
        return found.evidence_needed


def test_who_holds_a_dead_agents_pod_is_read_first_and_all_before_it_goes() -> None:
    """F265, I11: no table's keys are remembered; only where to begin."""
    tables, holders = Tables(17, 35), set[str]()
    assert tables.needed(holders) == {"dead"}
    assert tables.needed(holders) == {"dead"}
    assert len(tables.read) == 8, "those that are known to hold it, and who comes with them"
    tables.holding.clear()
    assert tables.needed(holders) == frozenset()
    assert len(set(tables.read)) == 40, "each is read before nobody needs it"
    tables.holding = {max(tables.read)}
    assert tables.needed(holders) == {"dead"}, "the last one"


def test_a_table_that_admits_a_dead_agent_keeps_its_pod() -> None:
    """F615: it may have sent a registration before it died."""
    tables, holders = Tables(), set[str]()
    tables.admitting = {TableSpec.from_object(SIBLINGS[20]).table_id}
    assert tables.needed(holders) == {"dead"}
    tables.admitting.clear()
    assert tables.needed(holders) == frozenset()


def test_a_table_that_cannot_be_read_keeps_every_pod() -> None:
    tables, holders = Tables(), set[str]()
    tables.unreadable = {TableSpec.from_object(SIBLINGS[20]).table_id}
    assert tables.needed(holders) is None
    assert tables.needed(holders) is None
    assert len(tables.read) == 8


# ---- which pods are listed

CONFIG = OperatorConfig(spark_image="image")
SIBLING = {
    **TABLE,
    "metadata": {**TABLE["metadata"], "name": "b", "uid": "b"},
    "spec": {**TABLE["spec"], "path": "s3a://lake/b", "image": "another"},
}
AGENT, ITS_AGENT = (TableSpec.from_object(table).agent_name(CONFIG.spark_image) for table in (TABLE, SIBLING))
DRIVER = PodFacts(
    "ns",
    "load-1",
    "driver",
    {
        **naming.MANAGED,
        naming.LABEL_ROLE: naming.ROLE_DRIVER,
        naming.LABEL_TABLE: "flights",
        naming.LABEL_DRIVER: "load-1",
    },
    "Running",
    "n",
    deleting=False,
    finalizers=(naming.EVIDENCE_FINALIZER,),
    containers=(),
    secrets=(naming.spark_key_name("load-1"),),
)
EXECUTOR = replace(
    DRIVER,
    name="load-1-exec-1",
    uid="executor",
    labels={**DRIVER.labels, naming.LABEL_ROLE: naming.ROLE_EXECUTOR},
    secrets=(),
    controller=PodName("load-1", "driver"),
)
OWN = replace(
    ENDED,
    name=f"{AGENT}-1",
    uid="agent",
    phase="Running",
    labels={**AGENT_LABELS, naming.LABEL_AGENT: AGENT},
)
OTHER = replace(OWN, name=f"{ITS_AGENT}-1", uid="other", labels={**AGENT_LABELS, naming.LABEL_AGENT: ITS_AGENT})
BARE = replace(EXECUTOR, name="bare", uid="bare", labels={"spark-role": "executor"})
WIDE, AGENTS = SPARK_EXECUTORS, f"{naming.LABEL_ROLE}={naming.ROLE_AGENT}"
REGISTERED = {"i": Stored({"inc": "i", "pod": "load-1", "podUID": "driver", "attempt": "ns.load-1"}, 1, 1)}
TERMINATING = {"i": Stored({"inc": "i", "phase": "Terminating", "pod": "load-1", "podUID": "driver"}, 1, 1)}
SETTLED = {"i": Stored({"inc": "i", "phase": "Settled", "pod": "load-1", "podUID": "driver"}, 1, 1)}


COUNTED = executors_missing.timer(naming.attempt_id("ns", "load-1"))


class Pods(Ports):
    """One writer with an executor; what was read, in its order."""

    def __init__(self) -> None:
        super().__init__(EtcdFacts(revision=1, cluster_id="c", writers=REGISTERED))
        self.there = [DRIVER, EXECUTOR, OWN]
        self.standing: dict[str, NodeFacts] = {}
        self.read: list[str] = []
        self.writer = writer("load-1")
        self.writer["status"]["attempts"][0]["executors"] = 1
        self.table = TABLE
        self.clock = 0.0
        self.timers = Timers(lambda: self.clock)
        self.index = TableIndex(CONFIG.spark_image)
        for table in (TABLE, SIBLING):
            self.index.put(table)
        self.memory = Memory(lambda: self.clock)
        self.observer = observer(self, index=self.index, timers=self.timers, config=CONFIG, memory=self.memory)

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        return self.table if kind == naming.TABLE_KIND else None

    async def writers(self, namespace: str, table: str) -> list[JsonDict]:
        return [self.writer]

    async def pods(self, namespace: str, *, labels: str) -> list[PodFacts]:
        self.read.append(labels)
        wanted = dict(part.split("=") for part in labels.split(","))
        told = [replace(p, labels={"spark-role": "executor", **p.labels}) if p.controller else p for p in self.there]
        return [p for p in told if wanted.items() <= p.labels.items()]

    async def pod(self, namespace: str, name: str) -> PodFacts | None:
        return None

    async def nodes(self, names: list[str]) -> Mapping[str, NodeFacts]:
        """As the real one: those of the named nodes that exist."""
        return {name: node for name, node in self.standing.items() if name in names}

    async def read_table(self, table_id: str, agent: str, *_others: Any) -> EtcdFacts:
        self.read.append("etcd")
        return self._facts

    def look(self, **facts: Any) -> set[str]:
        """Names of the pods of one look."""
        self._facts = EtcdFacts(revision=1, cluster_id="c", **{"writers": REGISTERED, **facts})
        self.read.clear()
        return {pod.uid for pod in asyncio.run(self.observer.observe(("ns", "flights"))).pods}

    def rested(self) -> Pods:
        """After the first look, which lists widely."""
        assert self.look() == {"driver", "executor", "agent"}
        assert {WIDE, AGENTS} <= {*self.read}
        return self


def test_the_nodes_of_executors_that_are_gone_are_asked_for() -> None:
    """F610: the record of the settling one names them, no pod does any more."""
    ports, there = Pods().rested(), NodeFacts("n2", "u", "b", ready=True, out_of_service=False)
    ports.there, ports.standing = [DRIVER, OWN], {"n2": there, "n4": there}
    pods = {f"gone-{node}": {"name": f"load-1-exec-{node}", "node": node, "evidence": True} for node in ("n2", "n3")}
    ports.look(settles={"i": Stored({**TERMINATING["i"].value, "node": "n1", "pods": pods}, 1, 1)})
    nodes = asyncio.run(ports.observer.observe(("ns", "flights"))).nodes
    assert dict(nodes.found) == {"n2": there}
    assert {"n1", "n3"} <= nodes.absent
    assert not nodes.gone("n4"), "nobody has named it"


def test_a_look_at_a_table_lists_its_own_pods() -> None:
    """Executors and agents of the whole namespace are those of other tables."""
    ports = Pods().rested()
    ports.there += [OTHER, BARE]
    assert ports.look() == {"driver", "executor", "agent"}
    assert ports.read == [f"{naming.LABEL_TABLE}=flights", f"{AGENTS},{naming.LABEL_AGENT}={AGENT}", "etcd"]
    assert ports.look(settles=SETTLED) == {"driver", "executor", "agent"}, "nothing waits for a settled one"


def _ended(ports: Pods) -> JsonDict:
    ports.there[0] = replace(DRIVER, phase="Failed")
    return {}


def _deleting(ports: Pods) -> JsonDict:
    ports.there[0] = replace(DRIVER, deleting=True)
    return {}


def _executors_are_missing(ports: Pods) -> JsonDict:
    ports.there[1] = replace(EXECUTOR, phase="Pending")
    ports.timers.start(("ns", "flights"), COUNTED)
    ports.clock += executors_missing.MISSING_SECONDS
    return {}


def _table_is_deleted(ports: Pods) -> JsonDict:
    ports.table = {**TABLE, "metadata": {**TABLE["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    return {}


def _writer_is_deleted(ports: Pods) -> JsonDict:
    ports.writer["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    return {}


def _collected(ports: Pods) -> JsonDict:
    ports.timers.start(("ns", "flights"), f"{collection.TIMER}i")
    return {"settles": SETTLED}


def _another_agent(ports: Pods) -> JsonDict:
    ports.table = {**TABLE, "status": {"agent": "hudi-agent-b"}}
    return {}


def _an_hour(ports: Pods) -> JsonDict:
    ports.clock += WIDE_SECONDS
    return {}


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(lambda _: {"settles": TERMINATING}, id="its driver is being settled"),
        pytest.param(lambda _: {"fences": {"i": Stored({"inc": "i"}, 1, 1)}}, id="it is fenced without a record"),
        _ended,
        _deleting,
        _executors_are_missing,
        _table_is_deleted,
        _writer_is_deleted,
        _collected,
        _another_agent,
        _an_hour,
    ],
)
def test_what_is_concluded_from_absence_rests_on_a_wide_list(happens: Callable[[Pods], JsonDict]) -> None:
    """I1, F26, F51: an executor without our labels; etcd is read after it."""
    ports = Pods().rested()
    ports.there += [OTHER, BARE]
    facts = happens(ports)
    assert ports.look(**facts) == {"driver", "executor", "agent", "other", "bare"}
    assert ports.read[-1] == "etcd"
    assert WIDE in ports.read


def test_what_a_wide_list_has_shown_is_looked_for_until_it_is_gone() -> None:
    """F26: its evidence goes when it has ended, also beside a driver that lives."""
    ports = Pods().rested()
    ports.there.append(BARE)
    ports.clock += WIDE_SECONDS
    for _ in range(3):
        assert "bare" in ports.look()
    ports.there.remove(BARE)
    ports.look()
    ports.look()
    assert WIDE not in ports.read


def test_an_agent_that_no_table_uses_is_seen_by_the_next_table() -> None:
    """A watch tells of it; of one that another table uses, that table's looks take care."""
    ports = Pods().rested()
    unused = replace(OTHER, name="hudi-agent-c-1", uid="unused", labels={**AGENT_LABELS, naming.LABEL_AGENT: "c"})
    ports.memory.pod(OTHER, deleted=False)
    assert asyncio.run(ports.observer.glance(("ns", "flights"))) is not None
    ports.there += [OTHER, unused]
    assert "unused" not in ports.look()
    ports.memory.pod(unused, deleted=False)
    assert asyncio.run(ports.observer.glance(("ns", "flights"))) is None
    assert "unused" in ports.look()


def test_a_wide_look_beside_a_second_agent_reads_no_other_table() -> None:
    """F623: looks at N tables, whose executors are missing, would read N tables each."""
    ports = Pods().rested()

    def in_use() -> frozenset[str] | None:
        ports.read.clear()
        return asyncio.run(ports.observer.observe(("ns", "flights"))).agents_in_use

    ports.there = [DRIVER, OWN, OTHER]
    ports.timers.start(("ns", "flights"), COUNTED)
    ports.clock += executors_missing.MISSING_SECONDS
    assert in_use() is None, "the table that uses the second agent looks after its pod"
    assert {WIDE, AGENTS} <= {*ports.read}
    ports.there[1] = replace(OWN, phase="Failed")
    assert in_use() is not None, "its own agent has ended"
    ports.there[1] = OWN
    ports.there[2] = replace(OTHER, phase="Failed")
    assert in_use() is not None, "a table that gives way to another one does not drop its evidence"
    ports.there[2] = replace(OTHER, phase="Failed", finalizers=())
    assert in_use() is None, "only the object is left"
    ports.there[2] = OTHER
    ports.index.remove(("ns", "b"))
    assert in_use() is not None, "nobody else looks after that pod"


def test_the_object_of_an_ended_agent_costs_nothing() -> None:
    """F623: it is kept for its logs, for good."""
    ports = Pods().rested()
    kept = [replace(OWN, name=f"{AGENT}-{n}", uid=f"kept-{n}", phase="Failed", finalizers=()) for n in range(5)]
    ports.there += kept[:2]
    assert asyncio.run(ports.observer.observe(("ns", "flights"))).agents_in_use is None
    assert asyncio.run(ports.observer.glance(("ns", "flights"))) is not None
    ports.there += kept[2:]
    assert asyncio.run(ports.observer.observe(("ns", "flights"))).agents_in_use is not None, "these are too many"


def test_a_table_whose_deletion_was_not_told_leaves_the_index() -> None:
    """F623: its agent would be taken for one that is used."""
    ports = Pods().rested()
    ports.table = None
    began = ports.clock
    ports.clock += 1
    ports.look()
    assert ports.index.tables("ns") == [("ns", "b")]
    ports.index.put(TABLE)
    ports.clock = began + 2
    ports.memory.table(TABLE, deleted=False)
    ports.clock = began + 1  # the look began before it was made again
    ports.look()
    assert ("ns", "flights") in ports.index.tables("ns")


def test_executors_of_a_driver_that_has_just_started_are_not_missed() -> None:
    """F623: each start of a writer would list the executors of the whole namespace."""
    ports = Pods().rested()
    ports.there.remove(EXECUTOR)
    ports.timers.start(("ns", "flights"), COUNTED)
    ports.look()
    assert WIDE not in ports.read
    ports.clock += executors_missing.MISSING_SECONDS
    ports.look()
    assert WIDE in ports.read, "what is reported rests on a wide list"


class Defaulted(Ports):
    """The namespace has defaults, which somebody creates just before a HudiWriter."""

    def __init__(self, *, forbidden: bool = False) -> None:
        super().__init__(EtcdFacts(revision=1, cluster_id="c"), [writer()])
        self._forbidden, self._made = forbidden, False

    async def writers(self, namespace: str, table: str) -> list[JsonDict]:
        found = await super().writers(namespace, table)
        await asyncio.sleep(0)  # whoever asks meanwhile is answered first
        self._made = True
        return found

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        if kind != "ConfigMap":
            return await super().get(kind, namespace, name)
        assert (namespace, name) == ("ns", "hudi-operator-defaults")
        if self._forbidden:
            raise Fatal("read ConfigMap ns/hudi-operator-defaults: forbidden (403)")
        meta = {"namespace": namespace, "name": name, "uid": "d"}
        return {"metadata": meta, "data": {"defaults.yaml": "startDeadlineSeconds: 60"}} if self._made else None


def defaulted(ports: Any) -> Observed:
    return asyncio.run(observer(ports).observe(("ns", "flights")))


def test_the_defaults_are_those_that_were_there_when_a_writer_was_made() -> None:
    found = defaulted(Defaulted())
    ((_, spec, _),) = found.objects.writer_specs
    assert spec is not None
    assert spec.start_deadline_seconds == 60
    assert spec.defaults_problem == ""


def test_a_look_does_not_wait_for_the_right_to_read_defaults() -> None:
    """Whoever is dead is fenced and settled; nothing starts."""
    found = defaulted(Defaulted(forbidden=True))
    assert found.etcd is not None
    ((_, spec, _),) = found.objects.writer_specs
    assert spec is not None
    assert spec.defaults_problem.endswith("cannot be read: read ConfigMap ns/hudi-operator-defaults: forbidden (403)")


# ---- a path of another HudiTable, or one that others may use


class Taken(Ports):
    """The gate names a HudiTable, which the API server has, has not, or does not show."""

    def __init__(self, gate: JsonDict, owner: JsonDict | Exception | None) -> None:
        super().__init__(EtcdFacts(revision=1, cluster_id="c", gate=Stored(gate, 1, 7)), [])
        self.owner, self.asked = owner, list[tuple[str, str]]()

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        if kind == naming.TABLE_KIND and (namespace, name) != ("ns", "flights"):
            self.asked.append((namespace, name))
            if isinstance(self.owner, Exception):
                raise self.owner
            return self.owner
        return await super().get(kind, namespace, name)


def owner(uid: str, path: str) -> JsonDict:
    return {"metadata": {"namespace": "far", "name": "away", "uid": uid}, "spec": {"path": path}}


OTHERS = {"state": "open", "table": "far/away", "tableUID": "o"}


@pytest.mark.parametrize(
    ("gate", "found", "gone"),
    [
        (OTHERS, None, True),
        (OTHERS, owner("o", "s3a://lake/flights"), False),
        (OTHERS, owner("o", "s3a://else/where"), False),
        (OTHERS, owner("another", "s3a://lake//flights/"), False),  # made again: it takes the gate over itself
        (OTHERS, owner("another", "s3a://else/where"), True),
        (OTHERS, Fatal("forbidden"), False),
        ({**OTHERS, "table": "far/A way"}, None, False),
        ({**OTHERS, "table": "../away"}, None, False),
        ({**OTHERS, "table": "", "tableUID": ""}, None, False),
        ({**OTHERS, "table": "ns/flights", "tableUID": "u"}, None, False),
        ({**OTHERS, "table": "ns/flights", "tableUID": "former"}, None, False),
    ],
)
def test_the_owner_of_a_path_is_gone_when_the_api_server_says_so(
    gate: JsonDict, found: JsonDict | Exception | None, gone: bool
) -> None:
    """F618: what cannot be asked, or is not allowed to be asked, is not gone."""
    ports: Any = Taken(gate, found)
    assert asyncio.run(observer(ports).observe(("ns", "flights"))).owner_is_gone is gone
    assert ports.asked in ([], [("far", "away")])
    if not gone and not isinstance(found, Exception) and found is None:
        assert not ports.asked, "nothing is asked for where no other HudiTable is named"


class Ranges(Ports):
    """Keys by table id, and the ids that were read."""

    def __init__(self, gate: JsonDict | None) -> None:
        table = EtcdFacts(revision=1, cluster_id="c", gate=Stored(gate, 1, 7) if gate else None)
        super().__init__(table, [])
        self.read: list[str] = []
        self.trial = EtcdFacts(revision=2, cluster_id="c", admits={"ns.hudi-agent-x-1": Stored({}, 1, 1)})

    async def read_table(self, table_id: str, agent: str, *others: Any) -> EtcdFacts:
        self.read.append(table_id)
        return self.trial if table_id == naming.trial_id("u") else await super().read_table(table_id, agent, *others)


MINE = {"state": "closed", "table": "ns/flights", "tableUID": "u"}


@pytest.mark.parametrize(
    ("gate", "namespaces", "tried"),
    [
        (None, ("ns", "other"), True),
        (MINE, ("ns", "other"), True),  # until it was open, keys of the trial may be left
        ({**MINE, "adopted": True}, ("ns", "other"), False),
        ({**MINE, "state": "open"}, ("ns", "other"), False),
        (OTHERS, ("ns", "other"), True),
        (None, ("ns",), False),
    ],
)
def test_the_trial_of_a_path_is_read_while_there_may_be_one(
    gate: JsonDict | None, namespaces: tuple[str, ...], tried: bool
) -> None:
    """F617."""
    ports: Any = Ranges(gate)
    config = OperatorConfig(watch_namespaces=namespaces)
    found = asyncio.run(observer(ports, config=config).observe(("ns", "flights")))
    assert found.trial == (ports.trial if tried else None)
    assert (naming.trial_id("u") in ports.read) is tried
