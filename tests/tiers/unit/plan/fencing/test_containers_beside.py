"""F45: containers that somebody puts beside ours (a mesh's proxy, an agent for secrets or logs) and
that never end by themselves.
"""

from __future__ import annotations

import pytest

from tests.support.world.simulated_world import World, all_settled, at_step, finished, no_evidence_left

KINDS = ("container", "sidecar", "ephemeral")


def beside(kind: str, **table: object) -> World:
    """A table whose pods all get such a container, its agent's too."""
    world = World(beside=kind)
    world.make_table(**table)
    world.run(lambda w: w.is_true(w.table, "Ready"))
    return world


@pytest.mark.parametrize("kind", KINDS)
def test_an_attempt_ends_with_its_driver(kind: str) -> None:
    """The slot is free, the writer has succeeded, and nothing of the pod is left running.

    A log is kept when nobody had to delete the pod.
    """
    world = beside(kind, concurrency={"maxWriters": 1})
    world.make_writer("first")
    world.make_writer("second")
    world.run(finished("first"), seconds=60)
    assert world.is_true(world.writers["first"], "Succeeded")
    world.run(finished("second"), seconds=60)
    world.settle_down()
    assert no_evidence_left(world, "first")
    assert no_evidence_left(world, "second")
    left = [pod for name, pod in world.pods.items() if name.startswith(("first-", "second-"))]
    assert [pod.deleting_since for pod in left] == ([] if kind == "container" else [None, None])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("executors", [0, 1])
def test_proof_still_needs_every_container(kind: str, executors: int) -> None:
    """Killed with the lock: the next attempt waits until the whole pod has ended (the world checks
    I1), which the pod's deletion brings about.
    """
    world = beside(kind)
    world.executors_per_driver, world.writer_hang_at = executors, 3
    world.make_writer("w", retryPolicy={"limit": 3, "backoffSeconds": 1})
    world.run(at_step("w", 3))
    world.writer_hang_at = None
    victim = world.writer_process("w")
    assert victim is not None
    pod = world.pods[victim.pod]
    world.kill(victim)
    world.run(lambda w: f"fence/{victim.inc}" in w.kv)
    if kind == "container":
        assert pod.phase == "Running"
        assert world.names("settle")[victim.inc].value["reason"] == "PodTerminated"
    world.run(lambda w: pod.uid in w.names("settle")[victim.inc].value["proofs"])
    assert pod.beside_ended
    world.run(finished("w"))
    world.run(all_settled)
    world.settle_down()
    assert no_evidence_left(world, "w")
    assert [entry["class"] for entry in world.writers["w"]["status"]["attempts"]] == ["Infrastructure", "Succeeded"]


def test_a_driver_that_never_registered_ends_too() -> None:
    world = beside("container")
    world.exit_codes = [10]
    world.make_writer("w")
    world.run(finished("w"), seconds=60)
    assert [entry["class"] for entry in world.writers["w"]["status"]["attempts"]] == ["UserError"]
    world.settle_down()
    assert no_evidence_left(world, "w")


def test_an_executor_that_ended_is_taken_away_while_its_driver_lives() -> None:
    world = beside("container")
    world.executors_per_driver, world.writer_hang_at = 1, 3
    world.make_writer("w")
    world.run(at_step("w", 3))
    executor = next(p for p in world.processes if p.role == "executor")
    world.kill(executor)
    for _ in range(20):
        world.reconcile()
        world.tick()
    assert executor.pod not in world.pods
    assert not world.names("fence")


@pytest.mark.parametrize("registered", [True, False])
def test_an_agent_that_ended_is_followed(registered: bool) -> None:
    """Also one that never came so far as to register: nothing but its own container says that
    it is over.
    """
    world = beside("container")
    first = world.agent_process()
    assert first is not None
    if not registered:
        for key in (f"writer/{first.inc}", f"alive/{first.inc}"):
            world.drop(key)
    world.kill(first, 11)
    world.run(lambda w: w.agent_process() is not None, seconds=60)
    world.run(lambda w: first.pod not in w.pods or not w.pods[first.pod].finalizers, seconds=60)
    world.settle_down()
