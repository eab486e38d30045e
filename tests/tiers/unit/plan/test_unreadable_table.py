"""F69: a HudiTable whose spec cannot be read, or is a newer one's, stops what is made from the
spec, and no fence and no settling of its writers.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.spec import TableSpec
from hudi_operator.api.tolerant import read_table
from hudi_operator.plan.core import actions as act
from tests.support.world.simulated_store import Garbage
from tests.support.world.simulated_world import Process, World, at_step, ready_world

UNREADABLE: tuple[tuple[str, Any], ...] = (
    ("lock", "none"),
    ("lock", {"suspectSeconds": "soon", "leaseSeconds": [10]}),
    ("fencing", {"mode": 7, "drainSeconds": "long"}),
    ("fencing", {"attestations": ["nobody"]}),
    ("concurrency", "Optimistic"),
    ("savepoints", ["a"]),
    ("services", {"clean": "nightly"}),
    ("storage", {"secretRefs": ["s3"]}),
    ("restore", 3),
    ("agent", []),
    ("path", 5),
)
FIELDS = [f"spec.{name}" for name, _ in UNREADABLE]


def phase(world: World, victim: Process) -> str:
    record = world.kv.get(f"settle/{victim.inc}")
    return str(record.value["phase"]) if record is not None else ""


def unlocked(world: World, victim: Process) -> bool:
    return phase(world, victim) in ("Unlocked", "RollingBack", "Swept", "Settled") and "lock" not in world.kv


def seconds_until(world: World, limit: int, until: Any) -> int:
    """Looks, a second apart, until it holds; `limit` when it does not come to pass."""
    for number in range(limit):
        world.reconcile()
        if until():
            return number
        world.tick()
    return limit


@pytest.fixture
def scene() -> tuple[World, Process]:
    """A writer that has the lock and hangs."""
    world = ready_world(fencing={"drainSeconds": 30})
    world.writer_hang_at = 3
    world.make_writer("victim")
    world.run(at_step("victim", 3))
    world.writer_hang_at = None
    victim = world.writer_process("victim")
    assert victim is not None
    return world, victim


@pytest.mark.parametrize(("field", "value"), UNREADABLE, ids=FIELDS)
def test_the_dead_are_fenced_proven_unlocked_and_rolled_back(
    scene: tuple[World, Process], field: str, value: Any
) -> None:
    world, victim = scene
    assert world.table is not None
    world.edit(world.table, **{field: value})
    world.reconcile()
    gate = world.mod("gate")
    stalled = world.condition(world.table, "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "InvalidSpec")
    assert f"spec.{field}" in stalled["message"]
    assert world.condition(world.table, "Ready")["reason"] == "InvalidSpec"
    world.kill(victim)
    took = seconds_until(world, 90, lambda: unlocked(world, victim))
    assert 30 <= took < 90, world.sentences[-3:]  # the gate's drain, not the default of 10 s
    assert f"fence/{victim.inc}" in world.kv
    # The agent lives, and undoes what the dead one has left.
    assert seconds_until(world, 90, lambda: phase(world, victim) == "Settled") < 90, world.sentences[-3:]
    # Nothing is made from what cannot be read.
    assert world.mod("gate") == gate
    assert not [p for p in world.processes if p.role == "writer" and p is not victim]
    world.edit(world.table, **{field: {"path": "s3a://lake/flights", "fencing": {"drainSeconds": 30}}.get(field)})
    world.run(lambda w: w.is_true(w.table, "Ready") and w.condition(w.table, "Stalled")["status"] == "False")


def test_what_waits_for_a_proof_is_shown_and_the_rest_of_status_stays(scene: tuple[World, Process]) -> None:
    world, victim = scene
    assert world.table is not None
    world.edit(world.table, lock="none")
    before = dict(world.table["status"])
    world.fail_node(victim.node, processes_die=False)
    world.force_delete(world.pods[victim.pod])
    seconds_until(world, 90, lambda: world.is_true(world.table, "AwaitingProofOfDeath"))
    status = world.table["status"]
    assert world.is_true(world.table, "AwaitingProofOfDeath")
    assert [s["incarnation"] for s in status["settling"]] == [victim.inc]
    assert "lock" in world.kv
    assert {k: status[k] for k in ("timeline", "agent", "tableId")} == {
        k: before[k] for k in ("timeline", "agent", "tableId")
    }


def test_a_deleted_table_that_cannot_be_read_goes_when_nobody_can_hold_its_lock(scene: tuple[World, Process]) -> None:
    world, victim = scene
    assert world.table is not None
    world.edit(world.table, services={"clean": "nightly"})
    world.kill(victim)
    world.delete(world.writers["victim"])
    world.delete(world.table)
    assert seconds_until(world, 300, lambda: world.table is None) < 300, world.sentences[-3:]
    assert "lock" not in world.kv


def test_an_attempt_that_was_announced_is_not_made_from_defaults() -> None:
    world = ready_world()
    assert world.table is not None
    world.make_writer("late")
    plan = world.reconcile()
    while not any(isinstance(a, act.UpdateStatus) and (a.status.get("attempts")) for a in plan.actions):
        plan = world.reconcile()
    announced = next(
        n for n, a in enumerate(plan.actions) if isinstance(a, act.UpdateStatus) and a.status.get("attempts")
    )
    assert any(isinstance(a, act.CreatePod) for a in plan.actions[announced:])
    world = ready_world()
    assert world.table is not None
    world.make_writer("late")
    world.reconcile()
    world.reconcile(crash_after=announced + 1)
    assert world.writers["late"]["status"]["attempts"]
    world.edit(world.table, hudiOptions="none")
    made = [
        a
        for _ in range(20)
        for a in world.reconcile().actions
        if isinstance(a, act.CreatePod | act.Apply | act.PutAdmit)
    ]
    assert made == []
    world.edit(world.table, hudiOptions=None)
    world.run(lambda w: w.writer_process("late") is not None)


GARBAGE: tuple[Any, ...] = (
    "x",
    7,
    True,
    [1],
    ["x"],
    [None],
    [[]],
    {"x": [1]},
    {"name": 3},
    [{"name": {}}],
    10**40,
    1.5,
)
NAMES = sorted(
    {
        *(n for n, _ in UNREADABLE),
        "type",
        "recordKeyFields",
        "orderingFields",
        "index",
        "merge",
        "schema",
        "image",
        "hudiOptions",
        "adoption",
    }
)
NAMES += ["bootstrap", "metadataTable", "commitCallback", "suspend", "tableName", "hudiVersion"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", GARBAGE, ids=lambda each: repr(each)[:20])
def test_whatever_a_field_says_the_table_is_known(name: str, value: Any) -> None:
    status = {"tableId": TableSpec.from_object({"spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"]}}).table_id}
    spec, why = read_table(
        {
            "kind": "HudiTable",
            "metadata": {"name": "t"},
            "spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"], name: value},
            "status": status,
        }
    )
    assert spec is not None
    if name != "path":
        assert spec.table_id == status["tableId"]
    if why:
        assert f"spec.{name}" in why
        assert spec.fencing.mode != "LeaseOnly"


def test_nothing_is_done_for_a_table_that_nobody_knows(scene: tuple[World, Process]) -> None:
    world, _ = scene
    assert world.table is not None
    world.edit(world.table, path=5)
    world.table["status"].pop("tableId")
    before = dict(world.kv)
    world.reconcile()
    assert world.condition(world.table, "Stalled")["reason"] == "InvalidSpec"
    assert world.kv == before


def test_the_path_alone_is_enough_beside_an_unreadable_gate(scene: tuple[World, Process]) -> None:
    world, victim = scene
    assert world.table is not None
    world.edit(world.table, lock="none")
    world.put("gate", Garbage("ajar"))
    world.kill(victim)
    took = seconds_until(world, 700, lambda: unlocked(world, victim))
    assert 600 <= took < 700, world.sentences[-3:]


def test_without_a_stored_drain_the_longest_is_waited_for(scene: tuple[World, Process]) -> None:
    world, victim = scene
    assert world.table is not None
    world.edit(world.table, fencing={"drainSeconds": "long"})
    world.kv["gate"].value["lock"]["drainSeconds"] = 0
    world.kill(victim)
    took = seconds_until(world, 700, lambda: unlocked(world, victim))
    assert 600 <= took < 700, world.sentences[-3:]
