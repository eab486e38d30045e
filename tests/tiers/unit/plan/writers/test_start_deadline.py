"""An attempt whose driver does not run in time fails, gives its place back, and is retried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hudi_contract import naming
from hudi_operator.model.facts import Observed, Refusal
from hudi_operator.plan.core import actions as act
from tests.support.world.simulated_world import NAMESPACE, World, finished, ready_world

DEADLINE = 30
QUOTA = Refusal("QuotaExceeded", "create Pod: exceeded quota: few (403)")


def attempts(world: World, name: str = "load") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (world.writers[name].get("status") or {}).get("attempts") or []
    return found


def ended(world: World) -> bool:
    return bool(attempts(world)) and bool(attempts(world)[0].get("class"))


class Refusing(World):
    """Makes no drivers while it refuses."""

    refuses = False

    def observe(self) -> Observed:
        refused = {
            naming.attempt_id(NAMESPACE, entry["pod"]): QUOTA
            for writer in self.writers.values()
            for entry in (writer.get("status") or {}).get("attempts") or []
            if not entry.get("class") and self.refuses
        }
        return replace(super().observe(), refusals=refused)

    def perform(self, action: act.Action) -> None:
        if self.refuses and isinstance(action, act.CreatePod):
            return
        super().perform(action)


def test_a_pod_without_a_node_is_given_up() -> None:
    world = ready_world(concurrency={"mode": "SingleWriter"})
    world.schedulable = False
    world.make_writer("load", startDeadlineSeconds=DEADLINE, retryPolicy={"limit": 3, "backoffSeconds": 60})
    began = world.now
    world.run(ended)
    assert DEADLINE < world.now - began < DEADLINE + 20
    (entry,) = attempts(world)
    assert entry["class"] == "StartDeadlineExceeded"
    assert entry["message"].startswith(f"no driver ran within {DEADLINE} s: ")
    world.run(lambda w: w.condition(w.writers["load"], "Admitted")["reason"] == "BackOff")
    world.schedulable = True
    world.make_writer("other")
    world.run(finished("other"))
    assert len(attempts(world)) == 1, "the place was free before the next attempt"
    world.run(finished("load"))
    assert [each["class"] for each in attempts(world)] == ["StartDeadlineExceeded", "Succeeded"]


def test_a_pod_that_is_refused_is_given_up() -> None:
    world = Refusing()
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.refuses = True
    world.make_writer("load", startDeadlineSeconds=DEADLINE, retryPolicy={"limit": 1, "backoffSeconds": 1})
    world.run(ended)
    assert attempts(world)[0]["class"] == "StartDeadlineExceeded"
    assert attempts(world)[0]["message"] == f"no driver ran within {DEADLINE} s: {QUOTA.reason}: {QUOTA.message}"
    world.run(finished("load"))
    assert [each["class"] for each in attempts(world)] == ["StartDeadlineExceeded"] * 2
    assert world.condition(world.writers["load"], "Stalled")["reason"] == "Failed"
    assert not any(name.startswith("load") for name in world.created)
    assert not [key for key in world.names("admit") if "load" in key], "nobody may register"


def test_without_a_deadline_it_waits() -> None:
    world = ready_world()
    world.schedulable = False
    world.make_writer("load")
    for _ in range(200):
        world.reconcile()
        world.tick()
    assert [each.get("class") for each in attempts(world)] == [None]


def test_the_time_behind_a_scheduling_gate_does_not_count() -> None:
    """A queue of the cluster holds the pod for hours; then it has no node for too long."""
    world = ready_world()
    world.gates = ("kueue.x-k8s.io/admission",)
    world.make_writer("load", startDeadlineSeconds=DEADLINE, retryPolicy={"limit": 1, "backoffSeconds": 60})
    for _ in range(3):
        for _ in range(DEADLINE):
            world.reconcile()
            world.tick()
        world.timers.clear()  # another operator
    (entry,) = attempts(world)
    assert (entry["gated"], entry.get("ungatedTime"), entry.get("class")) == (True, None, None)
    world.gates, world.schedulable = (), False
    world.run(lambda w: bool(attempts(w)[0].get("ungatedTime")))
    began = world.now
    world.run(ended)
    assert DEADLINE < world.now - began < DEADLINE + 20
    assert attempts(world)[0]["class"] == "StartDeadlineExceeded"


def test_a_pod_that_is_let_through_in_time_runs() -> None:
    world = ready_world()
    world.gates = ("kueue.x-k8s.io/admission",)
    world.make_writer("load", startDeadlineSeconds=DEADLINE)
    for _ in range(3 * DEADLINE):
        world.reconcile()
        world.tick()
    world.gates = ()
    world.run(finished("load"))
    assert [each["class"] for each in attempts(world)] == ["Succeeded"]


def test_a_gate_that_is_seen_late_counts_from_the_beginning() -> None:
    """The operator was away for longer than the deadline, since it made the pod."""
    world = ready_world()
    world.gates = ("kueue.x-k8s.io/admission",)
    world.make_writer("load", startDeadlineSeconds=DEADLINE)
    world.run(lambda w: "load" in " ".join(w.created))
    assert not attempts(world)[0].get("gated")
    world.now += 2 * DEADLINE
    world.timers.clear()
    world.reconcile()
    (entry,) = attempts(world)
    assert (entry["gated"], entry.get("class")) == (True, None)
    assert [p.deleting_since for name, p in world.pods.items() if name.startswith("load")] == [None]


def test_a_driver_that_runs_is_left_alone() -> None:
    world = ready_world()
    world.make_writer("load", startDeadlineSeconds=DEADLINE)
    world.run(lambda w: w.writer_process("load") is not None)
    process = world.writer_process("load")
    assert process is not None
    process.paused = True
    for _ in range(3):
        world.now += DEADLINE
        process.last_keepalive = world.now
        world.reconcile()
    assert [each.get("class") for each in attempts(world)] == [None]
    assert all(pod.deleting_since is None for name, pod in world.pods.items() if name.startswith("load"))
