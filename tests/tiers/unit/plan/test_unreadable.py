"""F46: a value that cannot be read stops what depends on it, says so on the HudiTable, and stops no
fence and no settling of anybody else.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract import records
from hudi_operator.model import doubts
from hudi_operator.model.facts import EtcdFacts
from hudi_operator.plan import table as planner
from tests.support.world.simulated_store import Garbage
from tests.support.world.simulated_world import Process, World, at_step, ready_world

HUGE = 10**40
DEEP = b"[" * 100_000 + b"]" * 100_000
GARBAGE: tuple[Any, ...] = ("many", [1], None, b"\xff\xfe\x00", DEEP)
"""Whole values that are nothing that anybody of ours writes; each more of them is in
`tests/tiers/unit/contract/test_records.py`.
"""

FIELDS: dict[str, dict[str, Any]] = {
    "report/timeline": {
        "pendingCount": "many",
        "commits": [1],
        "readCost": {"baseBytes": "1"},
        "pending": 3,
        "error": "bad",
        "foreign": ["x"],
        "activeLength": HUGE,
    },
    "report/callback": {"undelivered": "many", "atMs": HUGE},
    "report/attempt/ns.gone-1": {"commits": [1], "conflicts": "x", "inc": 7},
    "done/service-clean": {"failures": "many", "atMs": -1, "retryAtMs": HUGE},
    "done/savepoint-s": {"result": [1]},
    "done/restore-r": {"result": ["Running"], "undone": "many"},
    "done/metadata": {"failures": "many", "result": "Failed", "nonce": "n"},
    "done/bootstrap": {"failures": None, "result": 4},
    "request/service-clean": {"nonce": [1], "schedule": "x"},
    "admit/ns.gone-1": {"role": [1]},
    "writer/other": {"wallClockMs": "late", "podUID": [1], "pod": {}, "role": 1},
    "alive/other": {"n": "x"},
    "queue/other-1": {"inc": [1], "priority": "high"},
    "instant/20260101000000000": {"inc": ["x"], "state": "Lost"},
    "fence/other": {"inc": 3},
    "seen/other": {"node": [1]},
    "settle/other": {"phase": "Quarantined", "proofs": "many", "pods": [1], "instants": {"t": 4}, "times": [1]},
    "clock": {"value": 7},
}
CASES = [(key, value) for key in FIELDS for value in GARBAGE] + [
    (key, {field: value}) for key, of in FIELDS.items() for field, value in of.items()
]


def names(case: object) -> str:
    return repr(case)[:40] if not isinstance(case, str) else case


def holder(world: World) -> Process:
    """A writer that has the lock and hangs."""
    world.writer_hang_at = 3
    world.make_writer("victim")
    world.run(at_step("victim", 3))
    world.writer_hang_at = None
    victim = world.writer_process("victim")
    assert victim is not None
    return victim


def phase(world: World, inc: str) -> str:
    record = world.kv.get(f"settle/{inc}")
    return str(record.value["phase"]) if record is not None else ""


def unlocked(world: World, victim: Process) -> bool:
    return phase(world, victim.inc) in ("Unlocked", "RollingBack", "Swept", "Settled") and "lock" not in world.kv


def look(world: World, seconds: int, until: Any = lambda: False) -> bool:
    return world.passes(lambda _: until(), seconds)


def readable(world: World) -> dict[str, Any]:
    return world.condition(world.table, "RecordsReadable")


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> tuple[World, Process]:
    """A writer that has the lock and hangs.

    The agent lives and does nothing: how it reads has tests of its own.
    """
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("victim")
    world.run(at_step("victim", 3))
    victim = world.writer_process("victim")
    assert victim is not None
    monkeypatch.setattr(world, "_agent", lambda process: None)
    return world, victim


@pytest.mark.parametrize(("key", "value"), CASES, ids=names)
def test_a_suspect_is_fenced_and_unlocked_whatever_stands_beside_it(
    scene: tuple[World, Process], key: str, value: Any
) -> None:
    world, victim = scene
    if key == "report/timeline" and isinstance(value, dict):
        value = {**world.kv[key].value, **value}  # of the agent that serves
    world.put(key, Garbage(value))
    world.reconcile()
    if not isinstance(value, dict):
        assert readable(world)["status"] == "False"
        assert key in readable(world)["message"]
    world.kill(victim)
    assert look(world, 60, lambda: unlocked(world, victim)), world.sentences[-3:]
    assert f"fence/{victim.inc}" in world.kv


@pytest.mark.parametrize("value", [*GARBAGE, {"podUID": [1], "attempt": 7, "wallClockMs": "late"}], ids=names)
def test_an_unreadable_registration_is_fenced_by_its_keys_name(scene: tuple[World, Process], value: Any) -> None:
    world, victim = scene
    world.put(f"writer/{victim.inc}", Garbage(value))
    world.kill(victim)
    assert look(world, 60, lambda: unlocked(world, victim)), world.sentences[-3:]


@pytest.mark.parametrize(
    "value",
    [*GARBAGE, {"phase": "Quarantined"}, {"phase": "Draining", "pods": [1]}, {"phase": "Draining", "proofs": {"u": 1}}],
    ids=names,
)
def test_an_unreadable_settle_record_keeps_everything_of_its_incarnation(
    scene: tuple[World, Process], value: Any
) -> None:
    world, victim = scene
    world.kill(victim)
    look(world, 30, lambda: phase(world, victim.inc) == "Terminating")
    world.put(f"settle/{victim.inc}", Garbage(value))
    before = world.mod(f"settle/{victim.inc}")
    look(world, 60)
    assert "lock" in world.kv
    assert world.pods[victim.pod].finalizers
    assert world.mod(f"settle/{victim.inc}") == before
    assert f"settle/{victim.inc}" in readable(world)["message"]
    # A person removes what cannot be read: the fence stands, the record is made anew, and settling
    # begins from its start.
    world.drop(f"settle/{victim.inc}")
    assert look(world, 60, lambda: unlocked(world, victim)), world.sentences[-3:]
    assert readable(world)["status"] == "True"


@pytest.mark.parametrize("value", [*GARBAGE, {"inc": [1]}, {"attempt": "x"}], ids=names)
def test_an_unreadable_lock_may_be_anybodys(scene: tuple[World, Process], value: Any) -> None:
    world, victim = scene
    world.put("lock", Garbage(value))
    world.kill(victim)
    look(world, 60)
    assert "lock" in world.kv
    assert phase(world, victim.inc) == "Draining"
    assert "lock" in readable(world)["message"]
    assert not [p for p in world.processes if p.role == "writer" and p is not victim]


@pytest.mark.parametrize(
    "value",
    [
        *GARBAGE,
        {"state": "ajar"},
        {"state": "open", "lock": {"drainSeconds": "10"}},
        {"state": "open", "mode": "Trusting"},
    ],
    ids=names,
)
def test_an_unreadable_gate_stays_and_the_dead_are_settled_with_the_longest_drain(
    scene: tuple[World, Process], value: Any
) -> None:
    world, victim = scene
    world.put("gate", Garbage(value))
    before = world.mod("gate")
    world.kill(victim)
    assert not look(world, 300, lambda: unlocked(world, victim))
    assert phase(world, victim.inc) == "Draining"
    assert look(world, 400, lambda: unlocked(world, victim)), world.sentences[-3:]
    assert world.mod("gate") == before
    assert readable(world)["message"].startswith("gate ")
    assert world.condition(world.table, "Ready")["reason"] == "RecordsUnreadable"
    assert not [p for p in world.processes if p.role == "writer" and p is not victim]


@pytest.mark.parametrize("value", [*GARBAGE, {"inc": None}, {"inc": "x", "state": "Lost"}], ids=names)
def test_an_unreadable_instant_keeps_who_may_own_it(scene: tuple[World, Process], value: Any) -> None:
    world, victim = scene
    instant = next(t for t, k in world.names("instant").items() if k.value["inc"] == victim.inc)
    world.put(f"instant/{instant}", Garbage(value))
    world.kill(victim)
    assert look(world, 60, lambda: unlocked(world, victim)), world.sentences[-3:]
    look(world, 60)
    assert phase(world, victim.inc) != "Settled"
    assert f"instant/{instant}" in world.kv


@pytest.mark.parametrize("key", ["done/restore-r1", "done/savepoint-s1", "done/metadata", "done/bootstrap"])
@pytest.mark.parametrize("value", GARBAGE, ids=names)
def test_the_gate_stays_while_it_is_not_known_what_became_of_a_request(
    scene: tuple[World, Process], key: str, value: Any
) -> None:
    world, _ = scene
    world.put(key, Garbage(value))
    assert world.table is not None
    world.edit(world.table, fencing={"drainSeconds": 77})  # would close it
    before = world.mod("gate")
    look(world, 30)
    assert world.mod("gate") == before
    world.delete(world.table)
    look(world, 30)
    assert world.table is not None


DEFECTS = [
    (planner.gate, "plan_gate"),
    (planner.gate, "ends_runs"),
    (planner.evidence, "plan_evidence"),
    (planner.agent_pods, "plan_agent_pods"),
    (planner.sightings, "plan_sightings"),
    (planner.agents, "plan_agent"),
    (planner.savepoints, "plan_requests"),
    (planner.restores, "plan_requests"),
    (planner.adoption, "plan_adoption"),
    (planner.collection, "plan_collection"),
    (planner.table_services, "plan_requests"),
    (planner.attempts, "follow"),
    (planner.admission, "decide"),
    (planner.writer_status, "writer_status"),
    (planner.table_status, "table_status"),
]


@pytest.mark.parametrize(
    ("module", "name"), DEFECTS, ids=lambda each: getattr(each, "__name__", each).rpartition(".")[2]
)
def test_a_defect_of_one_planner_keeps_nobody_from_being_fenced(
    scene: tuple[World, Process], monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    world, victim = scene

    def broken(*args: Any, **kwargs: Any) -> Any:
        raise ValueError("unhashable type: 'list'")

    monkeypatch.setattr(module, name, broken)
    plan = world.reconcile()
    assert any("unhashable" in text for text in plan.failed)
    if module is not planner.table_status:
        assert readable(world)["reason"] == "PlanningFailed"
    world.kill(victim)
    assert look(world, 60, lambda: unlocked(world, victim)), world.sentences[-3:]


def test_a_neighbour_that_cannot_be_read_may_need_any_agents_evidence() -> None:
    def facts(value: Any, kind: str = "settles") -> EtcdFacts:
        return EtcdFacts(
            1, "c", **{kind: {"a": records.stored("settle" if kind == "settles" else "writer", "a", value)}}
        )

    assert doubts.unplaced(facts(b"{"))
    assert doubts.unplaced(facts({"podUID": 7}, "writers"))
    assert not doubts.unplaced(facts({"podUID": "u", "wallClockMs": "x"}, "writers"))
    assert not doubts.unplaced(facts({"phase": "Settled"}))


def test_what_became_of_an_old_savepoint_keeps_no_attempt_from_beginning() -> None:
    """F582: its gate stays open, and nothing is changed as long as the record cannot be read."""
    world = ready_world()
    world.change(savepoints=[{"name": "s1"}])
    world.run(lambda w: "done/savepoint-s1" in w.kv and w.kv["gate"].value["state"] == "open")
    world.put("done/savepoint-s1", Garbage("many"))
    world.make_writer("load")
    world.run(lambda w: bool((w.writers["load"].get("status") or {}).get("attempts")), seconds=60)
    assert world.kv["gate"].value["state"] == "open"
