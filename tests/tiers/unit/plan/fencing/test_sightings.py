"""F43: a boot id proves a death only when the operator has seen the pod alive in the boot before,
on the same node object and machine.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world.simulated_world import Node, Process, World, all_settled, at_step, finished, ready_world


def holder(world: World) -> Process:
    """A writer that has the lock and hangs."""
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(at_step("backfill", 3))
    world.writer_hang_at = None
    victim = world.writer_process("backfill")
    assert victim is not None
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    return victim


def cut_off(world: World, victim: Process, seconds: int = 100) -> None:
    """Its node does not answer and its process is frozen, or works on: the world fails when it is
    unlocked or its evidence goes (I1).
    """
    world.nodes["n1"].ready = False
    victim.paused = True
    for _ in range(seconds):
        world.reconcile()
        world.tick()
    assert victim.alive
    assert world.kv["lock"].value["inc"] == victim.inc
    assert world.names("settle")[victim.inc].value["proofs"] == {}


def fence(world: World, victim: Process) -> None:
    """Cut off from etcd, too."""
    world.nodes["n1"].ready, victim.paused = False, True
    world.run(lambda w: f"fence/{victim.inc}" in w.kv)


def test_a_sandbox_with_a_kernel_of_its_own_is_no_reboot() -> None:
    """The boot id that the JVM reads is not the node's, from the start."""
    world = World(kernels=True)
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    cut_off(world, holder(world))
    assert "n1" in world.condition(world.table, "AwaitingProofOfDeath")["message"]


def test_another_machine_under_the_nodes_name_is_no_reboot() -> None:
    """The Node is deleted and made again, by another machine; the old one runs on.

    Nobody trusts the deletion of nodes here.
    """
    world = ready_world()
    victim = holder(world)
    world.nodes["n1"] = Node("n1", "node-uid-3", "boot-3", machine="machine-3")
    cut_off(world, victim)


def test_another_machine_behind_the_same_object_is_no_reboot() -> None:
    world = ready_world()
    victim = holder(world)
    world.nodes["n1"].boot_id, world.nodes["n1"].machine = "boot-3", "machine-3"
    cut_off(world, victim)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_reboot_after_a_sighting_is_proof(restarted: bool) -> None:
    """The pod's object is gone, so the kubelet's word never comes.

    The sighting outlives the operator, and goes with its incarnation.
    """
    world = ready_world()
    victim = holder(world)
    fence(world, victim)
    world.force_delete(world.pods[victim.pod])
    if restarted:
        world.timers.clear()
    world.reboot_node("n1")
    world.run(finished("backfill"))
    assert world.names("settle")[victim.inc].value["proofs"][victim.pod_uid]["kind"] == "NodeRebooted"
    world.run(all_settled)
    world.settle_down()
    assert set(world.names("seen")) == {agent.inc for agent in world.processes if agent.role == "agent" and agent.alive}


def test_what_is_seen_too_late_proves_nothing() -> None:
    """The node was gone before the operator came: a boot id that it never saw there
    is not compared.
    """
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("backfill")
    world.run(lambda w: w.writer_process("backfill") is not None)
    victim = world.writer_process("backfill")
    assert victim is not None
    while victim.step < 3:
        world.tick()
    world.nodes["n1"].boot_id += "+"
    cut_off(world, victim)


def test_a_reboot_proves_nothing_of_an_executor() -> None:
    """It registers nothing, and may have been started after the reboot that ended its driver."""
    world = ready_world()
    world.executors_per_driver = 1
    victim = holder(world)
    executor = next(p for p in world.processes if p.role == "executor")
    fence(world, victim)
    world.run(lambda w: executor.pod_uid in w.names("settle")[victim.inc].value["pods"])
    for pod in (victim.pod, executor.pod):
        world.force_delete(world.pods[pod])
    world.kill(victim)
    world.nodes["n1"].boot_id += "+"
    for _ in range(60):
        world.reconcile()
        world.tick()
    proofs: dict[str, Any] = world.names("settle")[victim.inc].value["proofs"]
    assert (victim.pod_uid in proofs, executor.pod_uid in proofs) == (True, False)
    assert executor.pod in world.condition(world.table, "AwaitingProofOfDeath")["message"]


@pytest.mark.parametrize(
    "changed",
    [{"podUID": "another"}, {"node": "n2"}, {"nodeUID": ""}, {"bootId": 7}, {"machine": None}, {"bootId": "boot-1"}],
)
def test_a_note_of_something_else_proves_nothing(changed: dict[str, Any]) -> None:
    world = ready_world()
    victim = holder(world)
    fence(world, victim)
    world.put(f"seen/{victim.inc}", {**world.kv[f"seen/{victim.inc}"].value, **changed})
    if changed != {"bootId": "boot-1"}:
        world.nodes["n1"].boot_id += "+"
    cut_off(world, victim, seconds=40)
