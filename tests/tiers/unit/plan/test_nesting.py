"""A table in another one's folder (F61): which of the two is refused, when it is asked, and that
nothing is made for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.records import Stored
from hudi_operator.api.spec import TableSpec
from hudi_operator.control.index import TableIndex
from hudi_operator.control.nesting import (
    MOST_COMPARED,
    REACH_SECONDS,
    Overlapping,
    read_overlapping,
    read_tables_at,
    undecided,
)
from hudi_operator.model import conditions
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, World, ready_world

JsonDict = dict[str, Any]
OUTER, INNER = "s3a://lake/t1", "s3a://lake/t1/sub"
SECOND = "2026-01-01T00:00:0{}Z"


def table(name: str, path: str, second: int, namespace: str = "ns") -> JsonDict:
    meta = {"namespace": namespace, "name": name, "uid": f"uid-{name}", "creationTimestamp": SECOND.format(second)}
    return {
        "apiVersion": naming.API_VERSION,
        "kind": naming.TABLE_KIND,
        "metadata": meta,
        "spec": {"path": path, "recordKeyFields": ["id"]},
    }


class Ports:
    """Both ports: these tables, of which those named are open, and others have reached their path
    or try to.
    """

    def __init__(self, tables: list[JsonDict], opened: set[str], reached: set[str], trying: set[str]) -> None:
        self.tables, self.opened, self.asked = tables, opened, list[str]()
        self.reached, self.trying, self.requests = reached, trying, list[list[str]]()

    async def list_objects(self, kind: str, namespace: str) -> list[JsonDict]:
        assert kind == naming.TABLE_KIND
        self.asked.append(namespace)
        return [t for t in self.tables if namespace in ("", t["metadata"]["namespace"])]

    async def read_gates(self, table_ids: Collection[str]) -> dict[str, EtcdFacts]:
        self.requests.append(sorted(table_ids))
        return {table_id: self.gate(table_id) for table_id in table_ids}

    def gate(self, table_id: str) -> EtcdFacts:
        found = next(t for t in self.tables if naming.table_id(t["spec"]["path"]) == table_id)
        name, uid = found["metadata"]["name"], found["metadata"]["uid"]
        if name not in self.opened | self.reached | self.trying:
            return EtcdFacts(revision=1, cluster_id="c")
        gate = {"tableUID": uid, "state": "closed", "adopted": name in self.opened}
        reports = {"timeline": Stored({"exists": True}, 1, 1)} if name in self.reached else {}
        return EtcdFacts(revision=1, cluster_id="c", gate=Stored(gate, 1, 7), reports=reports)


def overlapping(mine: JsonDict, *others: JsonDict, **given: Any) -> tuple[str, ...]:
    """`given`: as of `look`."""
    return look(mine, *others, **given).blocking


def look(
    mine: JsonDict,
    *others: JsonDict,
    opened: set[str] | None = None,
    reached: set[str] | None = None,
    trying: set[str] | None = None,
    namespaces: tuple[str, ...] = (),
    prefixes: dict[str, tuple[str, ...]] | None = None,
    age: float = 10,
) -> Overlapping:
    """`age`: of the oldest tables, in seconds."""
    ports: Any = Ports([mine, *others], opened or set(), reached or set(), trying or set())
    config = replace(
        OperatorConfig(),
        allowed_schemes=("s3a", "s3", "hdfs"),
        watch_namespaces=namespaces,
        path_prefixes=prefixes or {},
    )
    now_ms = int((conditions.from_rfc3339(SECOND.format(0)) or 0) + age * 1000)
    asked = read_overlapping(TableSpec.from_object(mine), kubernetes=ports, etcd=ports, config=config, now_ms=now_ms)
    found = asyncio.run(asked)
    assert ports.asked == list(namespaces or ("",))
    return found


@pytest.mark.parametrize(("mine", "other"), [(INNER, OUTER), (OUTER, INNER), ("hdfs://NN/t", "hdfs://nn:8020/t")])
def test_the_later_one_is_refused(mine: str, other: str) -> None:
    assert overlapping(table("mine", mine, 2), table("other", other, 1)) == ("ns/other",)
    assert overlapping(table("mine", mine, 1), table("other", other, 2)) == ()


@pytest.mark.parametrize("trying", [False, True])
def test_an_older_one_that_does_not_reach_its_path_keeps_nobody_out(*, trying: bool) -> None:
    """F277: whether or not it has a gate, with which it still tries."""
    mine, other = table("mine", INNER, 2), table("other", OUTER, 1)
    named = {"other"} if trying else set[str]()
    assert overlapping(mine, other, trying=named, age=REACH_SECONDS) == ("ns/other",)
    assert overlapping(mine, other, trying=named, age=REACH_SECONDS + 2) == ()
    assert overlapping(mine, other, reached={"other"}, age=10 * REACH_SECONDS) == ("ns/other",)
    assert overlapping(mine, other, opened={"other"}, age=10 * REACH_SECONDS) == ("ns/other",)
    other["spec"]["recordKeyFields"] = 7
    assert overlapping(mine, other, trying=named, age=REACH_SECONDS + 2) == ()


def test_what_was_seen_of_gates_is_compared_when_one_is_put() -> None:
    """F277: of two that have both passed the check only one opens."""
    mine, tried = table("mine", INNER, 2), table("tried", OUTER, 1)
    idle, elsewhere = table("idle", f"{INNER}/x", 3), table("elsewhere", "s3a://pond/t", 1)
    seen = look(mine, tried, idle, elsewhere, trying={"tried"}, age=2 * REACH_SECONDS)
    assert seen == Overlapping((), {naming.table_id(OUTER): 7, naming.table_id(f"{INNER}/x"): 0})
    many = [table(f"t{n}", f"{INNER}/{n}", 3) for n in range(2 * MOST_COMPARED)]
    compared = look(mine, *many, trying={"t5", "t150"}).gates
    assert len(compared) == MOST_COMPARED
    assert {naming.table_id(f"{INNER}/{n}") for n in (5, 150)} <= compared.keys()


def test_a_path_of_many_tables_is_read_once() -> None:
    """Anybody may write one path into many HudiTables."""
    mine = table("mine", "s3a://lake/a", 1)
    ports: Any = Ports([mine, *(table(f"t{n}", "s3a://lake/a/b", 2) for n in range(5))], set(), set(), set())
    spec = TableSpec.from_object(mine)
    asyncio.run(read_overlapping(spec, kubernetes=ports, etcd=ports, config=OperatorConfig(), now_ms=0))
    assert ports.requests == [[naming.table_id("s3a://lake/a/b")]]


def test_the_gate_is_put_with_what_was_seen() -> None:
    world = ready_world()
    gate = {k: v for k, v in world.kv["gate"].value.items() if k != "adopted"}
    world.put("gate", {**gate, "state": "closed"})
    plan = plan_table(replace(world.observe(), overlapping_gates={"other": 5}), CONFIG)
    assert [a.others for a in plan.actions if isinstance(a, act.PutGate)] == [{"other": 5}]


def test_of_the_same_second_neither_goes_first() -> None:
    assert overlapping(table("a", INNER, 1), table("b", OUTER, 1)) == ("ns/b",)
    assert overlapping(table("b", OUTER, 1), table("a", INNER, 1)) == ("ns/a",)


def test_one_that_was_open_goes_first_whatever_the_clocks_say() -> None:
    assert overlapping(table("mine", INNER, 1), table("other", OUTER, 2), opened={"other"}) == ("ns/other",)


def test_others_do_not_matter() -> None:
    """Other folders, and the same path, which the gate tells apart."""
    others = (table("a", "s3a://lake/t10", 1), table("b", "s3a://pond/t1", 1), table("c", "s3://lake/t1/", 1))
    assert overlapping(table("mine", OUTER, 2), *others) == ()


def test_all_namespaces_that_are_watched_are_asked() -> None:
    others = (table("a", OUTER, 1, "n1"), table("b", "s3a://lake/t1/sub/x", 1, "n2"), table("c", OUTER, 1, "n3"))
    assert overlapping(table("mine", INNER, 2), *others) == ("n1/a", "n2/b", "n3/c")
    assert overlapping(table("mine", INNER, 2), *others, namespaces=("ns", "n1", "n2")) == ("n1/a", "n2/b")


def test_one_that_cannot_be_read_keeps_its_folder() -> None:
    broken = table("other", OUTER, 2)
    broken["spec"]["recordKeyFields"] = 7
    assert overlapping(table("mine", INNER, 1), broken) == ("ns/other",)


@pytest.mark.parametrize("readable", [True, False])
def test_one_that_may_not_use_its_path_does_not_count_unless_it_was_open(*, readable: bool) -> None:
    """F210: anybody can write another team's path into a HudiTable."""
    mine, other = table("mine", INNER, 2), table("other", OUTER, 1, "evil")
    if not readable:
        other["spec"]["recordKeyFields"] = 7
    prefixes = {"ns": ("s3a://lake/t1",), "evil": ("s3a://lake/evil",)}
    assert overlapping(mine, other, prefixes=prefixes) == ()
    assert overlapping(mine, other, prefixes={**prefixes, "evil": ("s3a://lake/t1",)}) == ("evil/other",)
    assert overlapping(mine, other, prefixes=prefixes, opened={"other"}) == ("evil/other",)


def at(folder: str, *tables: JsonDict, opened: set[str] | None = None, **prefixes: tuple[str, ...]) -> tuple[str, ...]:
    """Tables at the folder of an event log of a writer in the namespace `ns`."""
    ports: Any = Ports(list(tables), opened or set(), set(), set())
    index = TableIndex("image")
    for one in tables:
        index.put(one)
    config = replace(OperatorConfig(), path_prefixes=prefixes)
    found = read_tables_at([folder, "s3a://log/x"], namespace="ns", index=index, etcd=ports, config=config)
    return asyncio.run(found).get(folder, ())


@pytest.mark.parametrize("folder", [OUTER, INNER, "s3://lake//t1/sub/x", "s3a://lake"])
def test_tables_at_the_folder_of_an_event_log(folder: str) -> None:
    assert at(folder, table("a", INNER, 1), table("b", "s3a://lake2/t", 1)) == ("ns/a",)
    assert at("s3a://lake/t10", table("a", INNER, 1), table("b", OUTER, 1)) == ()


def test_tables_of_others_keep_event_logs_away_only_when_they_were_open() -> None:
    """F270: anybody could write the folder of another team's event logs into a HudiTable."""
    mine, theirs = table("mine", INNER, 1), table("theirs", OUTER, 1, "other")
    assert at(INNER, mine, theirs) == ("ns/mine",)
    assert at(INNER, mine, theirs, opened={"theirs"}) == ("ns/mine", "other/theirs")
    assert at(INNER, mine, ns=("s3a://pond",)) == ()
    assert at(INNER, mine, opened={"mine"}, ns=("s3a://pond",)) == ("ns/mine",)


def test_gates_of_many_tables_are_asked_for_at_once() -> None:
    """F652: their number is up to tenants, also of paths that they may not use."""
    many = [table(f"t{n}", f"{INNER}/{n}", 1, "evil") for n in range(200)]
    ids = sorted(naming.table_id(f"{INNER}/{n}") for n in range(200))
    ports: Any = Ports(many, {"t150"}, set(), set())
    index = TableIndex("image")
    for one in many:
        index.put(one)
    folders = [INNER, f"{INNER}/150/x"]
    found = asyncio.run(read_tables_at(folders, namespace="ns", index=index, etcd=ports, config=OperatorConfig()))
    assert found == dict.fromkeys(folders, ("evil/t150",))
    assert ports.requests == [ids]
    config = OperatorConfig(path_prefixes={"ns": (INNER,), "evil": ("s3a://lake/evil",)})
    spec = TableSpec.from_object(table("mine", INNER, 2))
    seen = asyncio.run(read_overlapping(spec, kubernetes=ports, etcd=ports, config=config, now_ms=0))
    assert seen.blocking == ("evil/t150",)
    assert ports.requests == [ids, ids]


@pytest.mark.parametrize(
    ("gate", "reports", "expected"),
    [
        (None, (), True),
        ({"tableUID": "", "state": "frozen"}, (), True),
        ({"tableUID": "uid-mine", "state": "closed"}, (), False),  # the agent is at it
        ({"tableUID": "uid-mine", "state": "closed"}, ("timeline",), True),  # it is about to open
        ({"tableUID": "uid-mine", "state": "closed", "adopted": True}, ("timeline",), False),
        ({"tableUID": "uid-mine", "state": "open"}, ("timeline",), False),
    ],
)
def test_it_is_asked_before_anything_is_made_and_before_the_gate_opens(
    gate: JsonDict | None, reports: tuple[str, ...], *, expected: bool
) -> None:
    facts = EtcdFacts(
        revision=1,
        cluster_id="c",
        gate=Stored(gate, 1, 1) if gate else None,
        reports={name: Stored({}, 1, 1) for name in reports},
    )
    mine = TableSpec.from_object(table("mine", INNER, 1))
    assert undecided(mine, facts) is expected
    assert not undecided(mine, None)
    assert not undecided(replace(mine, ref=replace(mine.ref, deleting=True)), facts)


def test_nothing_is_made_for_a_table_in_another_ones_folder() -> None:
    world = World()
    world.make_table()
    world.reconcile()  # the finalizer
    for others, said in (
        (("lake/t1", "secret/t2"), "overlaps with lake/t1;"),
        (("secret/t2",), "overlaps with another HudiTable;"),
    ):
        plan = plan_table(replace(world.observe(), overlapping=others), CONFIG)
        assert not [
            a for a in plan.actions if isinstance(a, act.PutGate | act.CreatePod | act.PutAssignment | act.PutAdmit)
        ]
        (status,) = [a.status for a in plan.actions if isinstance(a, act.UpdateStatus)]
        (stalled,) = [c for c in status["conditions"] if c["type"] == "Stalled"]
        assert (stalled["status"], stalled["reason"]) == ("True", "OverlappingPath")
        assert said in stalled["message"]
        assert "secret" not in stalled["message"]


def test_a_gate_does_not_open_on_a_path_that_another_one_got_meanwhile() -> None:
    world = ready_world()
    gate = {k: v for k, v in world.kv["gate"].value.items() if k != "adopted"}
    world.put("gate", {**gate, "state": "closed"})
    assert not [
        a
        for a in plan_table(replace(world.observe(), overlapping=("lake/t1",)), CONFIG).actions
        if isinstance(a, act.PutGate)
    ]
    assert [a.value["state"] for a in plan_table(world.observe(), CONFIG).actions if isinstance(a, act.PutGate)] == [
        "open"
    ]
