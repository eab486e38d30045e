"""Settle records and fences are collected late, few are kept, and none goes that
anybody could need.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.fencing.collection import AT_ONCE, COLLECT_SECONDS, KEPT_RECORDS
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, NAMESPACE, World

MORE = 4


def world_with(count: int, **changes: Any) -> World:
    """A table with so many settled incarnations, ``i000`` the oldest.

    ``changes`` to the record of the oldest.
    """
    world = World()
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    for number in range(count):
        inc = f"i{number:03}"
        record = {
            "inc": inc,
            "attempt": f"lake.w-{number}",
            "pod": f"w-{number}",
            "podUID": f"u{number}",
            "role": "writer",
            "phase": "Settled",
            "proofs": {f"u{number}": {"kind": "PodTerminated"}},
            "pods": {},
            "instants": {f"t{number}": {"outcome": "RolledBack"}},
            "times": {},
        }
        world.put(f"settle/{inc}", {**record, **(changes if number == 0 else {})})
        world.put(f"fence/{inc}", {"inc": inc})
    return world


def perform(world: World, plan: act.Plan) -> None:
    """The part of a plan that is about collection."""
    for action in plan.actions:
        if isinstance(action, act.StartTimer | act.StopTimer | act.Collect):
            world.perform(action)


def collected(world: World, *, after: float = COLLECT_SECONDS) -> list[str]:
    """What one operator collects that has looked at the world since ``after`` seconds."""
    perform(world, plan_table(world.observe(), CONFIG))
    world.now += after
    return [a.inc for a in plan_table(world.observe(), CONFIG).actions if isinstance(a, act.Collect)]


def test_the_oldest_beyond_the_kept_ones_go_after_a_while() -> None:
    world = world_with(KEPT_RECORDS + MORE)
    assert collected(world, after=COLLECT_SECONDS - 1) == []
    world.now += 1
    plan = plan_table(world.observe(), CONFIG)
    assert [a.inc for a in plan.actions if isinstance(a, act.Collect)] == [f"i{n:03}" for n in range(MORE)]
    assert "forgetting 4 settled incarnations" in plan.sentence
    perform(world, plan)
    assert len(world.names("settle")) == len(world.names("fence")) == KEPT_RECORDS
    assert "i000" not in world.names("fence")
    after = plan_table(world.observe(), CONFIG)
    assert not [a for a in after.actions if isinstance(a, act.Collect)]
    perform(world, after)
    assert not [name for name in world.timers if name.startswith("collect/")]


def test_few_at_one_look() -> None:
    assert len(collected(world_with(KEPT_RECORDS + 2 * AT_ONCE))) == AT_ONCE


def test_after_a_failover_the_time_begins_again() -> None:
    """What the former operator has sent lands or dies before anything goes."""
    world = world_with(KEPT_RECORDS + 1)
    assert collected(world) == ["i000"]
    world.timers.clear()
    assert collected(world, after=COLLECT_SECONDS - 1) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": "RollingBack"},
        {"phase": "Swept"},
        {"podUID": ""},
        {"proofs": {}},
        {"proofs": {"u0": {"kind": "Attestation"}}},
        {"proofs": {"u0": {"kind": "OutOfService"}}},
        {"proofs": {"u0": {"kind": "CredentialsRevoked"}}},
        {"pods": {"executor": {"name": "e", "node": "n", "evidence": True}}},
        {"proofs": {"u0": {"kind": "PodTerminated"}, "executor": {"kind": "Attestation"}}},
        {"instants": {"t0": {"outcome": None}}},
        {"role": "agent", "pod": "hudi-agent-x-1", "attempt": "lake.hudi-agent-x-1"},
    ],
    ids=str,
)
def test_a_record_that_is_not_over_or_not_certain_stays(changes: dict[str, Any]) -> None:
    """I2: not settled, no certain proof for a pod, an instant without outcome.

    Or the newest of an agent, whose number is still needed.
    """
    assert collected(world_with(KEPT_RECORDS + 2, **changes)) == ["i001"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("writer/i000", {"inc": "i000"}),
        ("alive/i000", {"inc": "i000"}),
        ("lock", {"inc": "i000"}),
        ("queue/i000-1", {"inc": "i000"}),
        ("admit/lake.w-0", {"attempt": "lake.w-0", "role": "writer"}),
        ("instant/t0", {"inc": "i000", "state": "Pending"}),
        ("instant/t0", {"inc": "other", "claimedBy": "i000", "state": "Pending"}),
        ("done/abandoned-i000", {"inc": "i000", "instants": ["t0"]}),
    ],
)
def test_a_record_whose_incarnation_any_key_names_stays(key: str, value: dict[str, Any]) -> None:
    world = world_with(KEPT_RECORDS + 2)
    world.put(key, value)
    assert collected(world) == ["i001"]


def test_a_record_stays_until_the_end_of_its_attempt_is_in_status() -> None:
    """F459: it is the only sign of a pod that is not in status yet, and is not made again."""
    world = world_with(KEPT_RECORDS + 2)
    world.make_writer("load")
    uid = world.writers["load"]["metadata"]["uid"]
    pod = f"load-{uid[:8]}-1"
    world.writers["load"]["metadata"]["finalizers"] = [naming.SETTLE_FINALIZER]
    world.writers["load"]["status"] = {"attempt": 1, "attempts": [{"number": 1, "pod": pod}]}
    names = {"attempt": naming.attempt_id(NAMESPACE, pod), "pod": pod}
    for inc, record in sorted(world.names("settle").items()):
        world.put(f"settle/{inc}", {**record.value, **(names if inc == "i000" else {})})
    assert collected(world) == ["i001"]
    plan = plan_table(world.observe(), CONFIG)
    (ended,) = [a.status["attempts"][-1] for a in plan.actions if isinstance(a, act.UpdateStatus) and a.name == "load"]
    assert ended["class"], "refused at each look"
    assert not [a for a in plan.actions if isinstance(a, act.CreatePod)]
    world.writers["load"]["status"]["attempts"] = [ended]
    assert collected(world) == ["i000"]


def test_a_record_stays_while_a_pod_carries_its_evidence() -> None:
    """F14: the proof in the record is what lets a late pod go."""
    (uid,) = [pod.uid for pod in world_with(0).pods.values()]
    world = world_with(KEPT_RECORDS + 2, podUID=uid, attempt="", proofs={uid: {"kind": "PodTerminated"}})
    (pod,) = world.pods.values()
    assert (pod.uid, pod.finalizers) == (uid, [naming.EVIDENCE_FINALIZER])
    assert collected(world) == ["i001"]
    pod.finalizers.clear()
    assert collected(world) == ["i000"]
