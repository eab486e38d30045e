"""The planner drives a simulated world through everything that can happen to a writer.

The world checks the invariants at each action.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.plan.core.actions import Action
from tests.support.world.simulated_store import OperatorCrashError, Process
from tests.support.world.simulated_world import (
    Node,
    World,
    all_settled,
    at_step,
    finished,
    in_phase,
    no_evidence_left,
    ready_world,
)

PHASES = ("Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept")


def test_happy_path() -> None:
    world = ready_world()
    world.make_writer("backfill")
    world.run(finished("backfill"))
    status = world.writers["backfill"]["status"]
    assert status["state"] == "Succeeded"
    assert status["attempt"] == 1
    assert status["attempts"][0]["class"] == "Succeeded"
    assert status["records"] == 10
    committed = status["lastCommit"]
    assert committed["instant"] in world.completed
    assert committed["completionTime"] == world.completion(committed["instant"]) > committed["instant"], (
        "its start and its end (RFC-22)"
    )
    assert committed["time"].startswith("2026-01-01T00:00:00")
    world.settle_down()
    assert all("hudi-agent" in a for a in world.names("admit"))
    assert no_evidence_left(world, "backfill")
    (driver,) = [p for n, p in world.pods.items() if n.startswith("backfill-")]
    assert driver.deleting_since is None, "its log stays"
    assert world.kv["gate"].value["state"] == "open"


def holder_killed(executors: int) -> tuple[World, Process]:
    """A world whose writer was killed in its critical section, and the killed process."""
    world = ready_world()
    world.executors_per_driver, world.writer_hang_at = executors, 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    world.kill(victim)
    return world, victim


@pytest.mark.parametrize("executors", [0, 2])
def test_killed_while_holding_the_lock(executors: int) -> None:
    """I1: the lock goes only after proof and drain; the next attempt commits.

    The dead one's instant is rolled back.
    """
    world, victim = holder_killed(executors)
    world.run(finished("backfill"))
    assert world.is_true(world.writers["backfill"], "Succeeded")
    world.run(all_settled)
    assert world.rolled_back == {victim.instant}
    assert world.writers["backfill"]["status"]["attempt"] == 2
    world.settle_down()
    assert no_evidence_left(world, "backfill")


def test_killed_after_the_put_keeps_the_commit() -> None:
    """I4: a completed instant of a dead writer is kept."""
    world = ready_world()
    world.writer_hang_at = 5
    world.make_writer("backfill")
    world.run(at_step("backfill", 5))
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    world.kill(victim)
    world.run(all_settled)
    assert victim.instant in world.completed
    assert not world.rolled_back


def test_killed_without_the_lock() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("backfill")
    world.run(at_step("backfill", 1))
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    world.kill(victim)
    world.run(finished("backfill"))
    world.run(all_settled)
    assert world.is_true(world.writers["backfill"], "Succeeded")


def test_a_rollback_that_fails_again_and_again_is_told_until_it_succeeds() -> None:
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    victim, agent = world.writer_process("backfill"), world.agent_process()
    assert victim is not None
    assert agent is not None
    world.kill(victim)
    world.run(in_phase("Unlocked"))
    agent.paused = True  # it keeps its lease for as long as this takes
    world.run(in_phase("RollingBack"), seconds=5)
    for failures in (1, 2, 3):
        record = world.kv[f"settle/{victim.inc}"].value
        failed = {
            victim.instant: {"action": "commit", "outcome": None, "failures": failures, "error": "the listing failed"}
        }
        world.put(f"settle/{victim.inc}", {**record, "instants": failed})
        world.reconcile()
        told = world.condition(world.table, "RollbackPending")
        assert (told["status"], told["reason"]) == ("True", "RollingBack")
        assert f"({failures} failures: the listing failed)" in told["message"]
        assert not world.rolled_back
        assert f"instant/{victim.instant}" in world.kv
    agent.paused = False
    world.run(all_settled)
    world.reconcile()
    assert world.rolled_back == {victim.instant}
    assert world.condition(world.table, "RollbackPending")["status"] == "False"


def test_one_writer_at_a_time_where_the_table_says_so() -> None:
    """maxWriters 1: the first step of a roll-out (RFC-22)."""
    world = ready_world(concurrency={"maxWriters": 1})
    world.writer_hang_at = 1
    world.make_writer("first")
    world.run(at_step("first", 1))
    world.make_writer("second")
    for _ in range(5):
        world.reconcile()
        world.tick()
    waiting = world.condition(world.writers["second"], "Admitted")
    assert (waiting["status"], waiting["reason"]) == ("False", "MaxWriters")
    assert "1 of 1 writers run: first" in waiting["message"]
    assert world.writer_process("second") is None
    first = world.writer_process("first")
    assert first is not None
    first.hang_at = world.writer_hang_at = None
    world.run(finished("second"))
    assert finished("first")(world)


def test_a_paused_holder_of_the_lock_cannot_outlive_it() -> None:
    """The reason for all this: SIGSTOP between check and PUT.

    The pod is killed before anybody else gets the lock.
    """
    world = ready_world()
    world.make_writer("paused")
    world.run(at_step("paused", 4))
    victim = world.writer_process("paused")
    assert victim is not None
    victim.paused = True
    world.make_writer("other")
    world.run(finished("other"))
    assert not victim.alive
    victim.paused = False
    world.run(all_settled)
    world.run(finished("paused"))
    assert world.is_true(world.writers["paused"], "Succeeded")
    reason = world.names("settle")[victim.inc].value["reason"]
    assert reason in ("LeaseGone", "PodTerminated")


def test_a_short_pause_has_no_consequences() -> None:
    world = ready_world()
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    victim = world.writer_process("backfill")
    assert victim is not None
    victim.paused = True
    for _ in range(8):
        world.reconcile()
        world.tick()
    victim.paused = False
    world.run(finished("backfill"))
    assert world.writers["backfill"]["status"]["attempt"] == 1
    assert not world.names("settle")


def test_never_registered() -> None:
    """An attempt that dies before it registers is over at once; nothing of it is left."""
    world = ready_world()
    world.exit_codes = [11]
    world.make_writer("backfill", retryPolicy={"limit": 3, "backoffSeconds": 1})
    world.run(finished("backfill"))
    assert [a["class"] for a in world.writers["backfill"]["status"]["attempts"]] == ["Infrastructure", "Succeeded"]
    world.settle_down()
    assert no_evidence_left(world, "backfill")


def test_force_deleted_pod_is_no_proof() -> None:
    """Whoever force-deletes the pod of a lock holder waits for a person's word (F26)."""
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    victim.paused = True
    world.reconcile()
    world.force_delete(world.pods[victim.pod])
    world.run(lambda w: w.is_true(w.table, "AwaitingProofOfDeath"))
    for _ in range(100):
        world.reconcile()
        world.tick()
    assert "lock" in world.kv
    message = world.condition(world.table, "AwaitingProofOfDeath")["message"]
    assert victim.pod in message
    assert "n1" in message
    assert victim.pod_uid in message
    world.kill(victim)
    assert world.table is not None
    word = {
        "podUID": victim.pod_uid,
        "node": "n1",
        "statement": "cut off from power",
        "attestedBy": "ann",
        "at": "2026-01-01T00:00:00Z",
    }
    world.edit(world.table, fencing={"attestations": [word]})
    world.run(finished("backfill"))
    world.run(all_settled)
    assert world.is_true(world.writers["backfill"], "Succeeded")
    assert world.names("settle")[victim.inc].value["proofs"][victim.pod_uid]["kind"] == "Attestation"


def test_force_deleted_executor_is_no_proof() -> None:
    world = ready_world()
    world.writer_hang_at, world.executors_per_driver = 3, 1
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    victim = world.writer_process("backfill")
    assert victim is not None
    executor = next(p for p in world.processes if p.role == "executor")
    world.fail_node("n1", processes_die=False)
    victim.paused = executor.paused = True
    world.run(in_phase("Terminating"))
    world.reconcile()
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    world.force_delete(world.pods[executor.pod])
    world.nodes["n1"].ready = True
    world.kill(victim)
    for _ in range(100):
        world.reconcile()
        world.tick()
    assert "lock" in world.kv
    assert executor.pod in world.condition(world.table, "AwaitingProofOfDeath")["message"]


def test_the_node_of_a_vanished_executor_is_asked_for() -> None:
    """F610: no pod of the table is on it any more, and it was not read: it counted as deleted."""
    world = ready_world(fencing={"trustNodeDeletion": True})
    world.writer_hang_at, world.executors_per_driver = 3, 1
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at, world.executors_per_driver = None, 0
    victim = world.writer_process("backfill")
    executor = next(p for p in world.processes if p.role == "executor")
    assert victim is not None
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    world.pods[executor.pod].node = executor.node = "n2"
    executor.paused = executor.ignores_sigterm = True
    world.kill(victim)
    world.run(in_phase("Terminating"))
    world.reconcile()
    world.force_delete(world.pods[executor.pod])
    world.pass_time(100)
    assert "lock" in world.kv
    told = world.condition(world.table, "AwaitingProofOfDeath")["message"]
    assert executor.pod in told
    assert "node object gone" not in told
    world.fail_node("n2", processes_die=True)
    del world.nodes["n2"]
    world.run(finished("backfill"))
    world.run(all_settled)
    assert world.names("settle")[victim.inc].value["proofs"][executor.pod_uid]["kind"] == "NodeDeleted"


def test_executors_that_have_just_ended_are_proven_with_their_driver() -> None:
    """F611: the operator dropped their evidence itself, and their objects were still there."""
    world = ready_world()
    world.writer_hang_at, world.executors_per_driver = 3, 2
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at, world.executors_per_driver = None, 0
    victim = world.writer_process("backfill")
    assert victim is not None
    for executor in [p for p in world.processes if p.role == "executor"]:
        world.delete_pod(executor.pod, 30)
    world.run(lambda w: any(p.phase == "Failed" for p in w.pods.values()))
    world.reconcile()
    world.kill(victim)
    world.run(finished("backfill"), seconds=120)
    world.run(all_settled)
    assert world.is_true(world.writers["backfill"], "Succeeded")
    assert no_evidence_left(world, "backfill")


def test_node_lost_then_rebooted() -> None:
    """A lost node blocks until it comes back; another agent starts at once (F22)."""
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    world.fail_node("n1", processes_die=True)
    world.run(lambda w: w.is_true(w.table, "AwaitingProofOfDeath"))
    for _ in range(80):
        world.reconcile()
        world.tick()
    assert world.kv["lock"].value["inc"] == victim.inc
    agent = world.agent_process()
    assert agent is not None
    assert agent.node == "n2"
    world.reboot_node("n1")
    world.run(finished("backfill"))
    world.run(all_settled)
    assert world.is_true(world.writers["backfill"], "Succeeded")
    assert not world.is_true(world.table, "AwaitingProofOfDeath")
    world.settle_down()


@pytest.mark.parametrize(("trust", "change"), [("trustNodeDeletion", "gone"), ("trustOutOfServiceTaint", "tainted")])
def test_node_proofs_count_only_as_configured(trust: str, change: str) -> None:
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    world.fail_node("n1", processes_die=True)
    if change == "gone":
        del world.nodes["n1"]
    else:
        world.nodes["n1"].out_of_service = True
    for _ in range(100):
        world.reconcile()
        world.tick()
    assert "lock" in world.kv
    assert world.table is not None
    world.edit(world.table, fencing={trust: True})
    world.run(finished("backfill"))
    assert world.is_true(world.writers["backfill"], "Succeeded")


@pytest.mark.parametrize("phase", PHASES)
def test_operator_dies_in_each_phase(phase: str) -> None:
    """I6: timers are lost, the drain starts again, settling goes on from what etcd says."""
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    world.kill(victim)
    world.run(in_phase(phase))
    world.timers.clear()
    if phase == "Draining":
        world.proofs_seen_at[victim.inc] = world.now  # the drain of the new process must be whole
    world.tick(3)
    world.run(all_settled)
    world.run(finished("backfill"))
    assert world.is_true(world.writers["backfill"], "Succeeded")


@pytest.mark.parametrize(("crash_every", "crash_from"), [(1, 2), (2, 7), (3, 2), (5, 2)])
def test_operator_dies_between_actions_all_the_time(crash_every: int, crash_from: int) -> None:
    """I6 with timers lost at every crash, in settling as before it: it still ends, because it dies
    after another number of actions each time.

    `crash_from` is such that one of them is where an attempt has ended in status and its admission
    is still there: without it no look would find an operator dead between the two.
    """
    world = World()
    world.make_table(fencing={"drainSeconds": 2}, lock={"suspectSeconds": 0})
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3), crash_every=crash_every, crash_from=crash_from)
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    world.kill(victim)
    before = world.deaths
    world.run(finished("backfill"), crash_every=crash_every, crash_from=crash_from)
    world.run(all_settled, crash_every=crash_every, crash_from=crash_from)
    assert before, "it died before there was anybody to settle"
    assert world.deaths > before, "it died in settling"
    world.settle_down()
    left = [name for name in world.names("admit") if name.startswith("lake.backfill")]
    assert not left, "an admission outlives its operator"


def killed_with_the_lock(dies_before: int | None = None) -> tuple[World, int]:
    """A writer is killed in its critical section, settled and followed, to the end.

    The operator dies once, before that action of its own (counted from the kill on), and has no
    timer any more. Returns the world and the number of actions.
    """
    world, _ = holder_killed(executors=1)
    performed, perform = 0, world.perform

    def one_of_many(action: Action) -> None:
        nonlocal performed
        performed += 1
        if performed - 1 == dies_before:
            raise OperatorCrashError
        perform(action)

    world.perform = one_of_many  # type: ignore[method-assign]
    world.run(finished("backfill"))
    world.run(all_settled)
    world.settle_down()
    return world, performed


def end_of(world: World) -> dict[str, Any]:
    """What must be the same whenever the operator has died: keys, pods, what was committed, and
    what the writer's status says of its attempts.
    """
    settled = {
        record.value["podUID"]: [record.value["phase"], sorted(record.value["proofs"]), record.value["instants"]]
        for record in world.names("settle").values()
    }
    status = world.writers["backfill"]["status"]
    return {
        "keys": sorted(key for key in world.kv if not key.startswith(("alive/", "report/"))),
        "settled": settled,
        "pods": {name: (pod.phase, sorted(pod.finalizers)) for name, pod in world.pods.items()},
        "commits": len(world.completed),
        "attempts": [(one["number"], one.get("class")) for one in status["attempts"]],
        "state": status["state"],
    }


def test_operator_dies_before_and_after_every_action_of_settling() -> None:
    """I6, each point once: before the first action, between any two, after the last. The end is
    that of an operator that never died.
    """
    whole, actions = killed_with_the_lock()
    assert actions > 30, "the enumeration has something to enumerate"
    wanted = end_of(whole)
    assert [record[0] for record in wanted["settled"].values()] == ["Settled"]
    for number in range(actions):
        world, _ = killed_with_the_lock(number)
        assert world.deaths == 1, number
        assert end_of(world) == wanted, f"it died before action {number} of {actions}"


def test_agent_dies_while_rolling_back() -> None:
    """The next agent continues, the dead agent's own incarnation is settled as well (F22)."""
    world = ready_world()
    world.writer_hang_at, world.agent_hangs_at = 3, "first outcome"
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    world.kill(victim)
    world.run(finished("backfill"))
    world.run(all_settled)
    agents = [p for p in world.processes if p.role == "agent"]
    assert len(agents) == 2
    assert agents[0].attempt != agents[1].attempt
    world.settle_down()


def test_agent_holding_the_lock_dies() -> None:
    world = ready_world()
    agent = world.agent_process()
    assert agent is not None
    assert world.acquire(agent)
    world.kill(agent)
    world.make_writer("backfill")
    world.run(finished("backfill"))
    assert world.is_true(world.writers["backfill"], "Succeeded")
    world.settle_down()


def test_held_too_long() -> None:
    world = ready_world(lock={"maxHoldSeconds": 30})
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    world.run(finished("backfill"))
    assert any(k.value["reason"] == "HeldTooLong" for k in world.names("settle").values())
    assert world.is_true(world.writers["backfill"], "Succeeded")


def test_pending_pod_never_scheduled_and_writer_deleted() -> None:
    """deletionTimestamp without a node is proof (F13)."""
    world = ready_world()
    world.schedulable = False
    world.make_writer("backfill")
    world.run(lambda w: any(n.startswith("backfill-") for n in w.pods))
    world.reconcile()
    world.delete(world.writers["backfill"])
    world.run(lambda w: "backfill" not in w.writers)
    assert not any(n.startswith("backfill-") for n in world.pods)


@pytest.mark.parametrize("step", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("stubborn", [False, True])
def test_writer_deleted_at_every_step(step: int, stubborn: bool) -> None:
    world = ready_world()
    world.writer_hang_at = step
    world.make_writer("backfill", stop={"graceSeconds": 5})
    world.run(lambda w: w.writer_process("backfill") is not None and at_step("backfill", step)(w))
    victim = world.writer_process("backfill")
    assert victim is not None
    victim.ignores_sigterm = stubborn
    world.delete(world.writers["backfill"])
    world.run(lambda w: "backfill" not in w.writers, seconds=100)
    assert not victim.alive
    assert "lock" not in world.kv
    world.settle_down()
    assert not any(n.startswith("backfill-") for n in world.pods)


@pytest.mark.parametrize("phase", ["", *PHASES])
def test_what_people_write_into_status_and_annotations_frees_nothing(phase: str) -> None:
    """Whoever may edit a status takes everything out of it, or says that all is over: nobody is
    fenced, unlocked or rolled back for that, nor left alone.

    The world checks each action against the truth. `phase`: the first phase of settling of a killed
    holder of the lock; none: a healthy one.
    """
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill", retryPolicy={"limit": 9})
    world.run(at_step("backfill", 3))
    victim = world.writer_process("backfill")
    assert victim is not None
    if phase:
        world.kill(victim)
        world.run(in_phase(phase))
    over = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    for number in range(20):
        assert world.table is not None
        for obj in (world.table, world.writers["backfill"]):
            obj["metadata"].setdefault("annotations", {})["hudioperator.io/settled"] = victim.inc
        world.table["status"] = {} if number % 2 else {"timeline": {"pendingCount": 0}, "settling": []}
        world.writers["backfill"]["status"] = (
            {} if number % 2 else {"state": "Succeeded", "attempts": [], "conditions": [over]}
        )
        world.reconcile()
        world.tick()
    if not phase:
        assert victim.alive
        assert "lock" in world.kv
        assert not world.names("fence")
        return
    world.run(all_settled)
    assert world.rolled_back == {victim.instant}
    assert not world.holds(victim)


@pytest.mark.parametrize("phase", [*PHASES, "Settled"])
def test_writer_and_table_deleted_in_every_phase(phase: str) -> None:
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    victim = world.writer_process("backfill")
    assert victim is not None
    world.kill(victim)
    world.run(in_phase(phase))
    world.delete(world.writers["backfill"])
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: "backfill" not in w.writers and w.table is None, seconds=150)
    assert "lock" not in world.kv
    assert not any(p.finalizers for p in world.pods.values())
    # Settling resumes with the next HudiTable of the path.
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready") and all_settled(w))


@pytest.mark.parametrize("step", [1, 3, 5])
def test_namespace_deleted_ends_within_two_minutes(step: int) -> None:
    """F14: nothing waits for an agent."""
    world = ready_world()
    world.writer_hang_at = step
    world.make_writer("backfill", stop={"graceSeconds": 30})
    world.run(at_step("backfill", step))
    start = world.now
    world.terminating = True
    assert world.table is not None
    world.delete(world.table)
    world.delete(world.writers["backfill"])
    for pod in list(world.pods.values()):
        world._mark_deleted(pod, pod.grace)
    world.run(lambda w: w.table is None and not w.writers and not w.pods, seconds=120)
    assert world.now - start < 120
