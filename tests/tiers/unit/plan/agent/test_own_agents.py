"""A table's own agent, with executors: its death is proven when theirs is (I1, I12), nobody else
touches them, and another one follows in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_contract.records import Stored
from hudi_operator.control.index import TableIndex
from hudi_operator.control.observe import SPARK_EXECUTORS, Observer
from hudi_operator.control.timers import Timers
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts, Observed, PodFacts, PodName
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, World, finished, ready_world

JsonDict = dict[str, Any]
AGENT = {"memory": "1Gi", "executors": {"instances": 1}}
SERVICE = "20260101000000777"


def world_with_executors() -> World:
    world = World()
    world.executors_per_agent = 1
    world.make_table(agent=AGENT)
    world.run(lambda w: w.is_true(w.table, "Ready"))
    return world


def agent_and_executor(world: World) -> tuple[Any, Any]:
    agent = world.agent_process()
    assert agent is not None
    return agent, next(p for p in world.processes if p.role == "executor" and p.pod.startswith(agent.pod) and p.alive)


def step(world: World, times: int) -> None:
    for _ in range(times):
        world.reconcile()
        world.tick()


def test_death_is_not_proven_while_an_executor_lives() -> None:
    """I12: it may still write files of the compaction that its agent was at.

    The next agent gets the instant after the proof of both.
    """
    world = world_with_executors()
    agent, executor = agent_and_executor(world)
    world.put(f"instant/{SERVICE}", {"inc": agent.inc, "action": "compaction", "state": "Pending"})
    executor.paused = executor.ignores_sigterm = True
    world.kill(agent)
    world.run(lambda w: f"settle/{agent.inc}" in w.kv)
    # A node that does not answer delivers no proof, and no end.
    world.nodes["n1"].ready = False
    step(world, 120)
    record = world.names("settle")[agent.inc].value
    assert record["phase"] in ("Fenced", "Terminating")
    assert executor.pod_uid in record["pods"], "nobody waits for the executor"
    assert executor.pod_uid not in record["proofs"]
    assert f"instant/{SERVICE}" in world.kv
    assert SERVICE not in world.rolled_back
    world.nodes["n1"].ready = True
    world.run(lambda w: f"instant/{SERVICE}" not in w.kv)
    record = world.names("settle")[agent.inc].value
    assert record["proofs"].keys() == {agent.pod_uid, executor.pod_uid}
    assert not executor.alive
    world.settle_down()
    assert executor.pod not in world.pods, "its evidence is kept although it is proven dead"


def test_evidence_of_the_agent_itself_is_left_to_the_planner_of_agent_pods() -> None:
    """Of executors it goes with the proof (F14).

    The agent's pod may be evidence for other tables.
    """
    world = world_with_executors()
    agent, executor = agent_and_executor(world)
    world.kill(agent)
    world.kill(executor)
    dropped: list[tuple[str, str]] = []
    while not dropped:
        plan = plan_table(replace(world.observe(), evidence_needed=frozenset({agent.pod_uid})), CONFIG)
        assert not [a for a in plan.actions if isinstance(a, act.DropEvidence) and a.name == agent.pod], (
            "another table needs it"
        )
        phases = {inc: key.value["phase"] for inc, key in world.names("settle").items()}
        dropped = [
            (a.name, phases.get(agent.inc, ""))
            for a in plan.actions
            if isinstance(a, act.DropEvidence) and a.name == executor.pod
        ]
        step(world, 1)
        assert world.now < 200
    assert dropped[0][1] == "Terminating"
    world.settle_down()
    pod = world.pods.get(agent.pod)
    assert pod is None or EVIDENCE_FINALIZER not in pod.finalizers


def test_executors_of_a_living_agent_are_left_alone_and_a_lost_one_is_taken_away() -> None:
    world = world_with_executors()
    _, executor = agent_and_executor(world)
    world.make_writer("w")
    world.run(finished("w"))
    world.settle_down()
    assert executor.alive
    assert not world.names("settle")
    world.kill(executor)
    step(world, 20)
    assert executor.pod not in world.pods
    assert not world.names("fence"), "nobody is fenced for the loss of an executor"


def test_executors_of_an_agent_that_left_by_itself_end() -> None:
    """The table is deleted: its agent leaves by a clean exit, and nothing of it stays."""
    world = world_with_executors()
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: w.table is None)
    assert not [pod.name for pod in world.pods.values() if pod.finalizers]


def test_a_pod_that_may_have_executors_gets_a_key_of_its_own_before_it_starts() -> None:
    """F150: what the kubelet waits for is made whenever it is missing, and only for such pods."""
    world = World()
    world.executors_per_agent = 1
    world.make_table(agent=AGENT)
    world.run(lambda w: bool(w.pods))
    (pod,) = world.pods.values()
    for _ in range(2):  # an operator that does not know whether it has made the key says the same again
        (action,) = [a for a in plan_table(world.observe(), CONFIG).actions if isinstance(a, act.CreateKey)]
        assert action.entry == "key"
        assert action.manifest["metadata"]["name"] == f"{pod.name}-spark-key"
        assert action.manifest["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid}
        ]
        assert "data" not in action.manifest
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.make_writer("alone")
    world.make_writer("many", executors={"instances": 1})
    world.run(lambda w: finished("alone")(w) and finished("many")(w))
    (mine,) = {name for name in world.created if name.startswith("many-")}
    assert world.keys == {f"{pod.name}-spark-key", f"{mine}-spark-key"}
    assert not [a for a in plan_table(world.observe(), CONFIG).actions if isinstance(a, act.CreateKey)]


def test_other_settings_are_another_agent_which_follows_in_order() -> None:
    """The old one is told to leave before the new one is made.

    Its pod ends, and its number is not used again.
    """
    world = world_with_executors()
    old, executor = agent_and_executor(world)
    assert world.table is not None
    world.edit(world.table, agent={**AGENT, "memory": "2Gi"})
    plan = plan_table(world.observe(), CONFIG)
    kinds = [a for a in plan.actions if isinstance(a, act.PutAssignment | act.CreatePod | act.PutAdmit)]
    before = kinds[0]
    assert isinstance(before, act.PutAssignment)
    assert (before.agent, before.value) == (old.pod.rpartition("-")[0], None)
    made = next(a.manifest["metadata"]["name"] for a in kinds if isinstance(a, act.CreatePod))
    assert made.rpartition("-")[0] != before.agent
    world.run(lambda w: not old.alive and not executor.alive)
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert world.names("writer").keys().isdisjoint({old.inc})


def test_each_generation_has_a_config_map_that_goes_with_its_pod() -> None:
    world = world_with_executors()
    agent, _ = agent_and_executor(world)
    maps = [m["metadata"]["name"] for m in world.applied if m["kind"] == "ConfigMap"]
    assert maps == [agent.pod]
    assert world.table is not None
    world.edit(world.table, agent={**AGENT, "memory": "2Gi"})
    deleted: list[str] = []
    for _ in range(100):
        plan = world.reconcile()
        deleted += [a.name for a in plan.actions if isinstance(a, act.DeleteObject) and a.kind == "ConfigMap"]
        world.tick()
    assert set(deleted) == {agent.pod}


def test_a_shared_agent_keeps_its_config_map() -> None:
    world = ready_world()
    first = world.agent_process()
    assert first is not None
    assert world.table is not None
    world.edit(world.table, image="other")
    for _ in range(100):
        plan = world.reconcile()
        assert not [a for a in plan.actions if isinstance(a, act.DeleteObject) and a.kind == "ConfigMap"]
        world.tick()


def test_an_agent_that_waits_for_executors_says_so() -> None:
    world = world_with_executors()
    observed = world.observe()

    def with_executor(**changes: Any) -> str:
        pods = tuple(
            replace(p, **changes) if p.labels.get(naming.LABEL_ROLE) == naming.ROLE_EXECUTOR else p
            for p in observed.pods
        )
        plan = plan_table(replace(observed, pods=pods), CONFIG)
        status = next(
            (a.status for a in plan.actions if isinstance(a, act.UpdateStatus)), (observed.table or {})["status"]
        )
        found = next(c for c in status["conditions"] if c["type"] == "ServicesHealthy")
        return f"{found['status']} {found['reason']} {found.get('message', '')}"

    assert with_executor().startswith("True")
    said = with_executor(
        phase="Pending", node="", unschedulable="0/1 nodes are available: 1 Insufficient memory.", containers=()
    )
    assert said.startswith("False ExecutorPending")
    assert "Insufficient memory" in said


# ---- what is read


def pod(name: str, uid: str, labels: dict[str, str], controller: PodName | None = None) -> PodFacts:
    return PodFacts(
        "ns",
        name,
        uid,
        labels,
        "Running",
        "n",
        deleting=False,
        finalizers=(EVIDENCE_FINALIZER,),
        containers=(),
        controller=controller,
    )


MINE = pod(
    "hudi-agent-a-1",
    "uid-a",
    {naming.LABEL_ROLE: "agent", naming.LABEL_AGENT: "hudi-agent-a", naming.LABEL_TABLE: "flights"},
)
OTHERS = pod(
    "hudi-agent-b-1",
    "uid-b",
    {naming.LABEL_ROLE: "agent", naming.LABEL_AGENT: "hudi-agent-b", naming.LABEL_TABLE: "events"},
)
SHARED = pod("hudi-agent-c-1", "uid-c", {naming.LABEL_ROLE: "agent", naming.LABEL_AGENT: "hudi-agent-c"})
BARE = {naming.LABEL_ROLE: naming.ROLE_EXECUTOR}
EXECUTORS = [
    pod("x-of-a", "x-a", BARE, PodName("hudi-agent-a-1", "uid-a")),
    pod("x-of-b", "x-b", BARE, PodName("hudi-agent-b-1", "uid-b")),
    pod("x-of-gone", "x-g", BARE, PodName("hudi-agent-a-0", "uid-gone")),
    pod("x-of-nobody", "x-n", BARE),
    # F356: the uid alone is not what Spark writes.
    pod("x-of-another-name", "x-m", BARE, PodName("theirs", "uid-a")),
]


class Ports:
    """Both ports."""

    offset: int | None = 0
    """What the API server's clock is ahead by, if it has answered in this look."""

    def __init__(self, agents: list[PodFacts], facts: EtcdFacts, writers: list[JsonDict] | None = None) -> None:
        self._agents, self._facts, self._writers = agents, facts, writers or []
        self.asked: list[str] = []

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        spec = {"path": "s3a://lake/flights", "recordKeyFields": ["id"], "agent": AGENT}
        meta = {"namespace": "ns", "name": "flights", "uid": "u", "generation": 1, "resourceVersion": "1"}
        return (
            {"apiVersion": naming.API_VERSION, "kind": kind, "metadata": meta, "spec": spec}
            if kind == naming.TABLE_KIND
            else None
        )

    async def list_objects(self, kind: str, namespace: str, **_: str) -> list[JsonDict]:
        return []

    async def writers(self, namespace: str, table: str) -> list[JsonDict]:
        return self._writers

    async def list_metadata(self, kind: str, namespace: str, *, labels: str) -> list[JsonDict]:
        return []

    async def pods(self, namespace: str, *, labels: str) -> list[PodFacts]:
        self.asked.append(labels)
        if labels == SPARK_EXECUTORS:
            return EXECUTORS
        wanted = dict(part.split("=") for part in labels.split(","))
        return [p for p in self._agents if wanted.items() <= p.labels.items()]

    async def pod(self, namespace: str, name: str) -> None:
        return None

    async def nodes(self, names: list[str]) -> dict[str, Any]:
        return {}

    def floors(self) -> dict[str, int]:
        return {}

    def clock_offset_ms(self, since: float = 0.0) -> int | None:
        return self.offset if since else 600_000

    async def read_table(self, table_id: str, agent: str, *_others: Any) -> EtcdFacts:
        return self._facts

    async def read_gates(self, table_ids: Collection[str]) -> dict[str, EtcdFacts]:
        return dict.fromkeys(table_ids, self._facts)


def look(
    agents: list[PodFacts], facts: EtcdFacts, writers: list[JsonDict] | None = None, offset: int | None = 0
) -> tuple[Observed, list[str]]:
    ports: Any = Ports(agents, facts, writers)
    ports.offset = offset
    observer = Observer(
        kubernetes=ports, etcd=ports, index=TableIndex("image"), timers=Timers(), config=OperatorConfig(), authority=str
    )
    return asyncio.run(observer.observe(("ns", "flights"))), ports.asked


EMPTY = EtcdFacts(revision=1, cluster_id="c")
GONE = Stored(
    {"namespace": "ns", "pod": "hudi-agent-a-0", "podUID": "uid-gone", "role": "agent", "attempt": "ns.hudi-agent-a-0"},
    1,
    1,
)


@pytest.mark.parametrize(
    ("agents", "facts", "found"),
    [
        pytest.param(
            [MINE, OTHERS, SHARED], EMPTY, {"x-of-a"}, id="those of the own agent, by its uid, and nobody else's (F26)"
        ),
        pytest.param(
            [MINE],
            EtcdFacts(revision=1, cluster_id="c", writers={"i": GONE}),
            {"x-of-a", "x-of-gone"},
            id="also of an agent whose pod is gone",
        ),
        pytest.param([SHARED, OTHERS], EMPTY, set(), id="none: no list of all executors for a table that has none"),
    ],
)
def test_which_executors_are_read(agents: list[PodFacts], facts: EtcdFacts, found: set[str]) -> None:
    observed, asked = look(agents, facts)
    assert {p.name for p in observed.pods} - {p.name for p in agents} == found
    assert (SPARK_EXECUTORS in asked) == bool(found)


@pytest.mark.parametrize("instances", [0, 2])
def test_executors_of_an_attempt_are_read_whatever_the_spec_says_now(instances: int) -> None:
    """F419: `spec.executors` is edited while a driver with executors is fenced."""
    spec = {"tableRef": {"name": "flights"}, "executors": {"instances": 0}}
    writer = {
        "apiVersion": naming.API_VERSION,
        "kind": naming.WRITER_KIND,
        "metadata": {"namespace": "ns", "name": "load", "uid": "w", "generation": 2, "resourceVersion": "1"},
        "spec": spec,
        "status": {"attempts": [{"number": 1, "pod": "load-1", "executors": instances}]},
    }
    _, asked = look([SHARED], EMPTY, [writer])
    assert (SPARK_EXECUTORS in asked) == bool(instances)


@pytest.mark.parametrize("offset", [None, 4_000])
def test_the_api_servers_clock_is_that_of_this_look_or_none(offset: int | None) -> None:
    """F418: nobody is fenced by what it was before."""
    observed, _ = look([SHARED], EMPTY, offset=offset)
    assert observed.api_now_ms == (None if offset is None else observed.now_ms + offset)
