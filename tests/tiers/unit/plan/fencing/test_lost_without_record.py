"""Pods of a lost node that no settle record names: not registered yet, left cleanly, or executors
of a driver that lives (F613).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world.simulated_world import Node, Process, World, at_step, finished, no_evidence_left, ready_world

HEALED = {"taint": "trustOutOfServiceTaint", "gone": "trustNodeDeletion"}


def unregistered() -> tuple[World, Process]:
    """A driver runs, has not registered, and its node is cut off."""
    world = ready_world()
    world.writer_hang_at = 0
    world.make_writer("w", retryPolicy={"limit": 3, "backoffSeconds": 1})
    world.run(lambda w: w.writer_process("w") is not None)
    world.writer_hang_at = None
    victim = world.writer_process("w")
    assert victim is not None
    assert not victim.registered
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    world.fail_node("n1", processes_die=False)
    victim.paused = True
    return world, victim


def message(world: World) -> str:
    return str(world.condition(world.table, "AwaitingProofOfDeath")["message"])


def test_an_attempt_that_never_registered_ends_with_its_node() -> None:
    """Kubernetes has evicted it; nobody will report its end.

    Its admission goes first, so that it never registers, and its evidence stays.
    """
    world, victim = unregistered()
    world.pass_time(60)
    assert f"admit/{victim.attempt}" in world.kv, "a node that is back in time loses nothing"
    world.delete_pod(victim.pod, 30)
    world.pass_time(20)
    assert f"admit/{victim.attempt}" in world.kv, "its time to end is not over"
    world.run(finished("w"))
    attempts = world.writers["w"]["status"]["attempts"]
    assert [a["class"] for a in attempts] == ["NodeLost", "Succeeded"]
    assert f"admit/{victim.attempt}" not in world.kv
    world.pass_time(100)
    assert world.pods[victim.pod].finalizers, "it is not proven dead"
    for word in (victim.pod, victim.pod_uid, "n1", "NotReady", "attestations"):
        assert word in message(world)
    victim.paused = False
    victim.hang_at = None
    world.tick()
    assert not victim.registered, "it is not admitted any more"
    world.nodes["n1"].ready = True
    world.run(lambda w: no_evidence_left(w, "w"))
    world.settle_down()
    assert message(world) == ""


def test_it_does_not_keep_a_writer_from_being_suspended() -> None:
    world, _ = unregistered()
    world.edit(world.writers["w"], suspend=True)
    world.run(lambda w: (w.writers["w"]["status"]["attempts"][-1]).get("class") == "Cancelled", seconds=120)


def test_one_that_has_registered_meanwhile_is_fenced() -> None:
    """It was about to register when its admission was withdrawn."""
    world, victim = unregistered()
    world.delete_pod(victim.pod, 30)
    world.run(lambda w: f"admit/{victim.attempt}" not in w.kv, seconds=60)
    world.put(f"admit/{victim.attempt}", {"attempt": victim.attempt, "role": "writer"})
    victim.paused, victim.hang_at = False, 1
    world.tick()
    assert victim.registered
    world.drop(f"admit/{victim.attempt}")
    world.pass_time(5)
    assert not world.writers["w"]["status"]["attempts"][-1].get("class")
    victim.paused = True
    world.run(lambda w: f"fence/{victim.inc}" in w.kv, seconds=60)


@pytest.mark.parametrize("how", ["taint", "gone", "attested"])
@pytest.mark.parametrize("who", ["driver", "executor"])
def test_what_settling_counts_as_proof_counts_for_them(who: str, how: str) -> None:
    """The evidence of one without a settle record was kept for ever, and so was the deletion."""
    world = ready_world()
    world.writer_hang_at, world.executors_per_driver = (0 if who == "driver" else 3), int(who == "executor")
    world.make_writer("w", retryPolicy={"limit": 0})
    world.run(at_step("w", world.writer_hang_at))
    world.reconcile()
    name, process = next((n, p.process) for n, p in world.pods.items() if p.labels["hudioperator.io/role"] == who)
    assert process is not None
    pod = world.pods[name]
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    pod.node = process.node = "n2"
    world.fail_node("n2", processes_die=True)
    world.delete_pod(name, 30)
    if how != "attested":
        world.collect(pod)
    if how == "gone":
        del world.nodes["n2"]
    if how == "taint":
        world.nodes["n2"].out_of_service = True
    world.pass_time(150)
    assert world.pods[name].finalizers
    assert name in message(world)
    trusted: dict[str, Any] = {HEALED.get(how, ""): True}
    word = {"podUID": pod.uid, "node": "n2", "statement": "cut off from power", "attestedBy": "ann"}
    if how == "attested":
        trusted = {"attestations": [{**word, "at": "2026-01-01T00:00:00Z"}]}
    world.change(fencing=trusted)
    if how == "attested" and who == "executor":
        world.pass_time(5)
        world.collect(pod)  # until its object may go with its evidence
    world.run(lambda w: not pod.finalizers, seconds=60)
    world.run(lambda w: message(w) == "", seconds=10)


def test_a_deletion_says_how_to_end_the_wait_for_an_agents_pod() -> None:
    """F649: its node was lost before a container of it began. Drivers alone were named."""
    world = ready_world()
    first = world.agent_process()
    assert first is not None
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    world.schedulable = False
    world.kill(first)
    world.run(lambda w: sum(name.startswith("hudi-agent-") for name in w.pods) == 2)
    pod = next(one for one in world.pods.values() if one.process is None)
    pod.node = "n2"
    world.fail_node("n2", processes_die=True)
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: pod.deleting_since is not None)
    world.pass_time(150)
    assert world.table is not None
    told = message(world)
    for word in (pod.name, f"attest in spec.fencing.attestations that pod uid {pod.uid} is dead", "n2", "NotReady"):
        assert word in told
    word = {"podUID": pod.uid, "node": "n2", "statement": "it never ran", "attestedBy": "ann"}
    world.edit(world.table, fencing={"attestations": [{**word, "at": "2026-01-01T00:00:00Z"}]})
    world.run(lambda w: w.table is None)
