"""Inside a prefix that several namespaces share, nobody takes the gate of a path before its own
credentials have reached it (F617).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.reports import ReportedError, TimelineReport
from hudi_operator.api.spec import TableSpec
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts, Observed
from hudi_operator.model.objects import read_whole
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.core import trial
from tests.support.world.simulated_store import CONFIG, Key, Process
from tests.support.world.simulated_world import World

SHARED = replace(CONFIG, path_prefixes={"*": ("s3a://lake/",)})
DENIED = ReportedError(code="StorageUnreachable", message="denied")


class Tenants(World):
    """HudiTables of one path; the store answers the agents of some of them (`reach`)."""

    config: OperatorConfig = SHARED
    told_by = ""
    """Another attempt than its own, in whose name the agent reports."""

    def begin(self, *names: str, reach: tuple[str, ...] = ()) -> None:
        self.reach, self.trials, self.owners = reach, dict[str, dict[str, Key]](), list[str]()
        self.tables: dict[str, dict[str, Any]] = {}
        self.ages: dict[str, dict[str, float]] = {}
        for name in names:
            self.add(name)

    def add(self, name: str) -> None:
        self.make_table()
        assert self.table is not None
        self.table["metadata"]["name"] = name
        self.tables[name], self.ages[name] = self.table, {}

    def spec(self, name: str) -> TableSpec:
        found = read_whole(self.tables[name]).spec
        assert found is not None
        return found

    def id(self, name: str) -> str:
        return naming.trial_id(self.tables[name]["metadata"]["uid"])

    def keys_of(self, name: str) -> dict[str, Key]:
        return self.trials.get(self.id(name), {})

    def observe(self) -> Observed:
        seen = super().observe()
        if self.table is None or seen.etcd is None:
            return seen
        name = self.table["metadata"]["name"]
        concerned = trial.concerns(self.spec(name), seen.etcd, self.config)
        others = tuple(f"lake/{n}" for n in self.tables if n != name)
        agents = {pod.labels[naming.LABEL_AGENT] for pod in seen.pods if naming.LABEL_AGENT in pod.labels}
        return replace(
            seen,
            tables_on_path=others,
            trial=self.trial_facts(name) if concerned else None,
            agents_in_use=frozenset(agents if others else ()),
        )

    def trial_facts(self, name: str) -> EtcdFacts:
        def group(kind: str) -> dict[str, Any]:
            found = {k.partition("/")[2]: v for k, v in self.keys_of(name).items() if k.startswith(f"{kind}/")}
            return {n: key.stored(kind, n) for n, key in found.items()}

        assigned = self.keys_of(name).get("assignment")
        return EtcdFacts(
            revision=self.revision,
            cluster_id="c1",
            admits=group("admit"),
            reports=group("report"),
            writers=group("writer"),
            assignment=assigned.stored("assignment", "") if assigned is not None else None,
        )

    def put_trial(self, id: str, key: str, value: dict[str, Any]) -> None:
        self.revision += 1
        self.trials.setdefault(id, {})[key] = Key(value, self.revision, self.revision)

    def perform(self, action: act.Action) -> None:
        id = getattr(action, "table_id", "")
        ids = {self.id(name) for name in self.tables}
        if isinstance(action, act.EndTrial):
            assert action.trial_id in ids
            self.trials.pop(action.trial_id, None)
        elif id not in ids:
            self._of_the_table(action)
            super().perform(action)
            self._note_owner()
        elif isinstance(action, act.PutAssignment):
            if action.value is not None:
                self.put_trial(id, "assignment", dict(action.value))
            else:
                self.trials.get(id, {}).pop("assignment", None)
        elif isinstance(action, act.PutAdmit):
            self.put_trial(id, f"admit/{action.attempt}", {"attempt": action.attempt, "role": action.role})
        else:
            assert isinstance(action, act.DeleteAdmit), f"{action} in a trial"
            self.trials.get(id, {}).pop(f"admit/{action.attempt}", None)

    def _of_the_table(self, action: act.Action) -> None:
        if isinstance(action, act.PutGate) and action.value.get("tableUID"):
            name = action.value["table"].partition("/")[2]
            assert name in self.reach, f"{name} takes the gate, and its credentials do not reach the path"
            assert action.value["state"] != "open" or not self.keys_of(name), "the trial is left behind"

    def _note_owner(self) -> None:
        gate = self.kv.get("gate")
        owner = str(gate.value["table"]).partition("/")[2] if gate is not None and gate.value.get("tableUID") else ""
        if owner and self.owners[-1:] != [owner]:
            self.owners.append(owner)

    def _agent(self, process: Process) -> None:
        for id, keys in list(self.trials.items()):
            if "assignment" in keys and f"admit/{process.attempt}" in keys:
                name = keys["assignment"].value["table"].partition("/")[2]
                said = TimelineReport(agent_inc=self.told_by or process.attempt, exists=name in self.reach)
                self.put_trial(id, "report/timeline", (said if said.exists else said.but(error=DENIED)).to_json())
        super()._agent(process)

    def look(self, name: str, crash_after: int | None = None) -> None:
        self.table, self.timers = self.tables[name], self.ages[name]
        self.reconcile(crash_after=crash_after)

    def pass_seconds(self, seconds: int, *, crash_every: int = 0) -> None:
        for second in range(seconds):
            for name in tuple(self.tables):
                self.look(name, crash_after=second % 5 if crash_every and second % crash_every == 0 else None)
            self.tick()

    def reason(self, name: str, kind: str) -> str:
        return str(self.condition(self.tables[name], kind)["reason"])


def test_who_does_not_reach_the_path_never_has_its_gate() -> None:
    world = Tenants()
    world.begin("squatter")
    world.pass_seconds(300)
    assert not {"gate", "lock", "assignment"} & set(world.kv)
    assert not world.names("admit")
    assert not world.names("writer")
    assert world.reason("squatter", "Ready") == "StorageUnreachable"
    assert world.agent_process() is not None, "it still tries"


@pytest.mark.parametrize("crash_every", [0, 3])
def test_the_owner_waits_for_nobody(crash_every: int) -> None:
    world = Tenants()
    world.begin("squatter", reach=("owner",))
    world.pass_seconds(60, crash_every=crash_every)
    world.add("owner")
    world.pass_seconds(30 if not crash_every else 90, crash_every=crash_every)
    assert world.owners == ["owner"]
    assert world.is_true(world.tables["owner"], "Ready")
    assert world.reason("squatter", "Stalled") == "DuplicatePath"
    assert not world.keys_of("owner")
    assert not world.keys_of("squatter")


def test_another_store_under_the_same_name_is_not_the_path() -> None:
    """F657: its agent would reach the path there."""
    world = Tenants()
    world.config = replace(SHARED, store_endpoints=("https://s3.example.com",))
    world.begin("liar", reach=("liar", "owner"))
    world.tables["liar"]["spec"]["storage"] = {"options": {"fs.s3a.endpoint": "http://minio.liar.svc"}}
    world.pass_seconds(30)
    assert world.owners == []
    assert world.reason("liar", "Stalled") == "OptionNotAllowed"
    world.tables["liar"]["spec"] |= {
        "storage": {"options": {"fs.s3a.endpoint": "https://s3.example.com"}},
        "agent": {"podTemplate": {"spec": {"dnsConfig": {"nameservers": ["10.0.0.9"]}}}},
    }
    world.pass_seconds(30)
    assert world.owners == []
    assert "dnsConfig" in str(world.condition(world.tables["liar"], "Stalled")["message"])
    world.add("owner")
    world.tables["owner"]["spec"]["storage"] = {"options": {"fs.s3a.endpoint": "https://s3.example.com/"}}
    world.pass_seconds(30)
    assert world.owners == ["owner"]
    assert world.is_true(world.tables["owner"], "Ready")


def test_of_two_that_reach_the_path_one_has_it() -> None:
    world = Tenants()
    world.begin("one", "two", reach=("one", "two"))
    world.pass_seconds(60)
    (owner,) = world.owners
    (other,) = {"one", "two"} - {owner}
    assert world.is_true(world.tables[owner], "Ready")
    assert world.reason(other, "Stalled") == "DuplicatePath"
    assert not world.keys_of(other)


def test_a_deleted_table_takes_its_trial_along() -> None:
    world = Tenants()
    world.begin("squatter")
    world.pass_seconds(60)
    assert world.keys_of("squatter")
    world.delete(world.tables["squatter"])
    for _ in range(60):
        if world.table is None:
            break
        world.look("squatter")
        world.tick()
    assert world.table is None
    assert not world.keys_of("squatter")
    assert not [pod.name for pod in world.pods.values() if pod.finalizers], "nobody would take them off"


def test_a_deleted_table_of_another_ones_path_takes_its_agent_along() -> None:
    world = Tenants()
    world.begin("squatter")
    world.pass_seconds(30)
    (pod,) = world.pods.values()
    of_another = {"state": "open", "table": "other/owner", "tableUID": "uid-of-the-owner", "adopted": True}
    world.put("gate", of_another)
    world.pass_seconds(5)
    assert world.reason("squatter", "Stalled") == "DuplicatePath"
    assert not world.keys_of("squatter")
    assert pod.finalizers, "it is kept for the next try"
    world.delete(world.tables["squatter"])
    for _ in range(60):
        if world.table is None:
            break
        world.look("squatter")
        world.tick()
    assert world.table is None
    assert not [pod.name for pod in world.pods.values() if pod.finalizers]
    assert world.kv["gate"].value == of_another


@pytest.mark.parametrize("attempt", ["lake.hudi-agent-0-1", "other.agent-1"])
def test_a_report_of_another_agent_is_none(attempt: str) -> None:
    world = Tenants()
    world.begin("owner", reach=("owner",))
    world.told_by = attempt
    world.pass_seconds(60)
    assert "gate" not in world.kv
    world.told_by = ""
    world.pass_seconds(30)
    assert world.owners == ["owner"]


def test_a_report_of_an_agent_that_had_another_access_is_none() -> None:
    """Its credentials reached the path, those that the HudiTable names now have not."""
    world = Tenants()
    world.begin("owner", reach=("owner",))
    world.look("owner")
    world.look("owner")
    id = world.id("owner")
    former = "lake.hudi-agent-00000000000000000000000000000000-1"
    world.put_trial(id, f"admit/{former}", {"attempt": former, "role": "agent"})
    told = TimelineReport(agent_inc=former, exists=True)
    world.put_trial(id, "report/timeline", told.to_json())
    world.look("owner")
    assert "gate" not in world.kv
    assert f"admit/{former}" not in world.keys_of("owner")


@pytest.mark.parametrize(
    ("prefixes", "watched", "expected"),
    [
        ({}, (), False),
        ({}, ("lake",), False),
        ({}, ("lake", "other"), True),
        ({"lake": ("s3a://lake/",)}, ("lake", "other"), True),  # other has no line, and may use any path
        ({"lake": ("s3a://lake/",), "other": ("s3a://else/",)}, ("lake", "other"), False),
        ({"lake": ("s3a://lake/",), "other": ("s3a://lake/flights/",)}, ("lake", "other"), True),
        ({"lake": ("s3a://lake/",), "other": ("s3a://lake/flights2/",)}, ("lake", "other"), False),
        ({"lake": ("s3a://lake/",), "unwatched": ("s3a://lake/",), "*": ()}, ("lake",), False),
        ({"lake": ("s3a://lake/",), "*": ()}, (), False),
        ({"lake": ("s3a://lake/",), "other": ("*",), "*": ()}, (), True),
        ({"lake": ("s3a://lake/",), "*": ("S3://lake//",)}, (), True),
        ({"*": ("s3a://lake/",)}, (), True),
    ],
)
def test_shared_is_what_another_namespace_may_use(
    prefixes: dict[str, tuple[str, ...]], watched: tuple[str, ...], expected: bool
) -> None:
    world = World()
    world.make_table()
    found = read_whole(world.table or {}).spec
    assert found is not None
    config = OperatorConfig(path_prefixes=prefixes, watch_namespaces=watched)
    assert trial.shared(found, config) is expected


def test_no_trial_where_nobody_else_may_use_the_path() -> None:
    world = Tenants()
    world.config = replace(CONFIG, path_prefixes={"lake": ("s3a://lake/",), "*": ()})
    world.begin("owner", reach=("owner",))
    world.look("owner")
    world.look("owner")
    assert world.owners == ["owner"]
    assert not world.trials
