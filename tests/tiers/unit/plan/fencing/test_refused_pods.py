"""F52: Failed without a word about any container.

A kubelet writes that of a pod that it refuses, a restarted one also of a pod that still runs.
"""

from __future__ import annotations

import pytest

from hudi_operator.plan.fencing.settling import KILL_GRACE_SECONDS
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


def with_executor(step: int) -> World:
    world = ready_world()
    world.executors_per_driver, world.writer_hang_at = 1, step
    world.make_writer("w", retryPolicy={"limit": 3, "backoffSeconds": 1})
    world.run(at_step("w", step))
    world.writer_hang_at = None
    return world


@pytest.mark.parametrize("ran", [True, False])
def test_a_refused_executor_is_proven_when_the_kubelet_has_looked(ran: bool) -> None:
    """Its driver dies with the lock.

    Until its deletion has brought the kubelet's word nothing is unlocked (the world checks I1).
    """
    world = with_executor(3)
    victim, executor = world.writer_process("w"), next(p for p in world.processes if p.role == "executor")
    assert victim is not None
    pod = world.pods[executor.pod]
    if ran:
        executor.ignores_sigterm = True
    else:
        world.kill(executor)
        pod.process = None
    world.refuse(pod)
    world.kill(victim)
    world.run(lambda w: pod.deleting_since is not None, seconds=30)
    since = world.now
    world.run(lambda w: not pod.finalizers, seconds=30)
    assert world.now - since >= (KILL_GRACE_SECONDS if ran else 0)
    assert not executor.alive
    world.run(finished("w"))
    world.run(all_settled)
    world.settle_down()
    assert no_evidence_left(world, "w")


@pytest.mark.parametrize("lives", [True, False])
def test_what_was_written_before_the_node_was_back_is_no_report(lives: bool) -> None:
    """F614: the API server knows of no container, the garbage collector has called the pod Failed,
    and its node is ready again: the kubelet has not looked yet, and the executor runs.
    """
    world = with_executor(3)
    victim, executor = world.writer_process("w"), next(p for p in world.processes if p.role == "executor")
    assert victim is not None
    pod = world.pods[executor.pod]
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    pod.node = executor.node = "n2"
    pod.phase, pod.unreported, executor.ignores_sigterm = "Pending", True, True
    world.fail_node("n2", processes_die=False)
    world.tick()
    world.delete_pod(pod.name, 30)
    world.nodes["n2"].out_of_service = True
    world.tick()
    world.collect(pod)
    if not lives:
        world.kill(victim)
        world.run(in_phase("Terminating"))
    world.nodes["n2"].ready = True
    world.reconcile()
    world.nodes["n2"].out_of_service = False
    for _ in range(3):
        world.reconcile()
    assert executor.alive
    assert pod.finalizers
    world.run(lambda w: not pod.finalizers, seconds=90)
    assert not executor.alive


def test_a_refused_executor_of_a_living_driver_goes() -> None:
    world = with_executor(3)
    executor = next(p for p in world.processes if p.role == "executor")
    executor.ignores_sigterm = True
    world.refuse(world.pods[executor.pod])
    world.run(lambda w: executor.pod not in w.pods, seconds=60)
    assert not executor.alive
    assert not world.names("fence")


def test_a_refused_driver_and_a_refused_agent_leave_nothing_behind() -> None:
    """Neither came so far as to start."""
    world = ready_world()
    world.schedulable = False
    world.make_writer("w", retryPolicy={"limit": 3, "backoffSeconds": 1})
    world.run(lambda w: any(name.startswith("w-") for name in w.pods))
    first = next(pod for name, pod in world.pods.items() if name.startswith("w-"))
    agent = world.agent_process()
    assert agent is not None
    world.kill(agent)
    world.run(lambda w: sum(name.startswith("hudi-agent-") for name in w.pods) == 2)
    second = next(pod for pod in world.pods.values() if pod.name.startswith("hudi-agent-") and pod.process is None)
    for pod in (first, second):
        pod.node = "n1"
        world.refuse(pod)
    world.schedulable = True
    world.run(finished("w"))
    world.run(lambda w: not first.finalizers and not second.finalizers, seconds=100)
    world.settle_down()


def test_a_refused_driver_that_runs_on_is_waited_for() -> None:
    """It has the lock."""
    world = with_executor(3)
    victim = world.writer_process("w")
    assert victim is not None
    victim.paused = True
    world.refuse(world.pods[victim.pod])
    world.run(finished("w"))
    assert not victim.alive
    world.run(all_settled)
