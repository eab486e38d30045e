"""What one look reads, and in which order: another operator may act between two of its reads."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.records import Stored
from hudi_operator.api.spec import TableSpec
from hudi_operator.control.applied_objects import AppliedObjects
from hudi_operator.control.index import TableIndex
from hudi_operator.control.observe import Observer
from hudi_operator.control.sibling_tables import read_sibling_tables
from hudi_operator.control.timers import Timers
from hudi_operator.model.config import ConsentBindingConfig, ConsentConfig, OperatorConfig
from hudi_operator.model.facts import EtcdFacts, Observed, PodFacts
from hudi_operator.model.ports import Conflict, Fatal

JsonDict = dict[str, Any]
TABLE = {
    "apiVersion": naming.API_VERSION,
    "kind": naming.TABLE_KIND,
    "metadata": {"namespace": "ns", "name": "flights", "uid": "u", "generation": 1, "resourceVersion": "1"},
    "spec": {"path": "s3a://lake/flights", "recordKeyFields": ["id"], "orderingFields": ["ts"]},
}


def writer(*pods: str) -> JsonDict:
    attempts = [{"number": n, "pod": pod} for n, pod in enumerate(pods, 1)]
    return {
        "metadata": {"namespace": "ns", "name": "load"},
        "spec": {"tableRef": {"name": "flights"}},
        "status": {"attempts": attempts},
    }


class Ports:
    """Both ports. ``lists``: what the lists of writers answer, one after the other."""

    def __init__(self, facts: EtcdFacts, *lists: list[JsonDict]) -> None:
        self._facts, self._lists = facts, list(lists)

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        return TABLE if kind == naming.TABLE_KIND else None

    async def list_objects(self, kind: str, namespace: str, **_: str) -> list[JsonDict]:
        assert kind == naming.TABLE_KIND, "no list of a namespace's writers"
        return [TABLE]

    async def writers(self, namespace: str, table: str) -> list[JsonDict]:
        return [w for w in self._lists.pop(0) if w["spec"]["tableRef"]["name"] == table]

    async def list_metadata(self, kind: str, namespace: str, *, labels: str) -> list[JsonDict]:
        return []

    async def pods(self, namespace: str, *, labels: str) -> list[Any]:
        return []

    def floors(self) -> dict[str, int]:
        return {}

    def clock_offset_ms(self, since: float = 0.0) -> int:
        return 0

    async def read_table(self, table_id: str, agent: str) -> EtcdFacts:
        return self._facts


def look(facts: EtcdFacts, *lists: list[JsonDict]) -> Observed:
    ports: Any = Ports(facts, *lists)
    observer = Observer(
        kubernetes=ports, etcd=ports, index=TableIndex("image"), timers=Timers(), config=OperatorConfig(), authority=str
    )
    return asyncio.run(observer.observe(("ns", "flights")))


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
    observer = Observer(
        kubernetes=ports, etcd=ports, index=index, timers=Timers(), config=OperatorConfig(), authority=str
    )
    found = asyncio.run(observer.observe(("ns", "flights")))
    assert found.tables_at_event_logs == {"s3a://lake/x/l": ("ns/other",)}


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
    both: Any = ports
    observer = Observer(
        kubernetes=both,
        etcd=both,
        index=TableIndex("image"),
        timers=Timers(),
        config=OperatorConfig(consent_binding=BINDING, **config),
        authority=str,
        applied=applied,
    )
    return asyncio.run(observer.observe(("ns", "flights")))


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
    observer = Observer(
        kubernetes=ports, etcd=ports, index=TableIndex("image"), timers=Timers(), config=config, authority=str
    )
    found = asyncio.run(observer.observe(("ns", "flights")))
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

    async def read_table(self: Ports, table_id: str, agent: str) -> EtcdFacts:
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
        self.read: list[str] = []

    async def list_objects(self, kind: str, namespace: str) -> list[JsonDict]:
        return SIBLINGS

    async def read_table(self, table_id: str, agent: str) -> EtcdFacts:
        self.read.append(table_id)
        if table_id in self.unreadable:
            return EtcdFacts(1, "c", settles={"i": Stored({}, 1, 1, unreadable="no JSON")})
        registered = {"i": Stored({"podUID": "dead"}, 1, 1)} if table_id in self.holding else {}
        return EtcdFacts(1, "c", writers=registered)

    def needed(self, holders: set[str]) -> frozenset[str] | None:
        self.read.clear()
        ports: Any = self
        found = asyncio.run(
            read_sibling_tables(("ns", "x"), [ENDED], kubernetes=ports, etcd=ports, default_image="i", holders=holders)
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


def test_a_table_that_cannot_be_read_keeps_every_pod() -> None:
    tables, holders = Tables(), set[str]()
    tables.unreadable = {TableSpec.from_object(SIBLINGS[20]).table_id}
    assert tables.needed(holders) is None
    assert tables.needed(holders) is None
    assert len(tables.read) == 8
