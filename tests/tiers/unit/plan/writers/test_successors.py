"""The attempt after one that died with the lock: made while that lock is drained, never before the
proof, and it reads nothing before the lock is free (F5, F392).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world.simulated_world import Node, World, at_step, finished, ready_world

PROGRAM = {"source": None, "application": {"mainFile": "local:///opt/job.py"}}


def died_with_the_lock(*, executors: int = 0, writer: dict[str, Any] | None = None, **table: Any) -> tuple[World, Any]:
    """A world in which attempt 1 of writer `w` was killed while it held the lock."""
    world = ready_world(**table)
    world.executors_per_driver = executors
    world.writer_hang_at = 3
    world.make_writer("w", **(writer or {}))
    world.run(lambda w: (p := w.writer_process("w")) is not None and p.step == 3)
    victim = world.writer_process("w")
    assert victim is not None
    assert world.kv["lock"].value["inc"] == victim.inc
    world.writer_hang_at = None
    world.kill(victim)
    return world, victim


def successor(world: World) -> str:
    """The pod of attempt 2; empty: there is none yet."""
    return next((name for name in world.created if name.startswith("w-") and name.endswith("-2")), "")


def phase(world: World, inc: str) -> str:
    return str(world.kv[f"settle/{inc}"].value["phase"]) if f"settle/{inc}" in world.kv else ""


def test_its_pod_is_made_while_the_lock_is_drained() -> None:
    world, victim = died_with_the_lock(fencing={"drainSeconds": 20})
    world.run(lambda w: bool(successor(w)), seconds=15)
    assert world.kv["lock"].value["inc"] == victim.inc
    assert phase(world, victim.inc) == "Draining"
    assert f"fence/{victim.inc}" in world.kv
    world.run(finished("w"))
    assert [a["number"] for a in world.writers["w"]["status"]["attempts"]] == [1, 2]


def test_it_registers_and_waits_and_status_says_for_what() -> None:
    world, victim = died_with_the_lock(fencing={"drainSeconds": 20})
    world.run(lambda w: (p := w.writer_process("w")) is not None and p is not victim and p.registered, seconds=15)
    world.reconcile()
    process = world.writer_process("w")
    assert process is not None
    assert (process.step, world.kv["lock"].value["inc"]) == (0, victim.inc)
    admitted = world.condition(world.writers["w"], "Admitted")
    assert (admitted["status"], admitted["message"]) == (
        "True",
        "attempt 2 is admitted; it waits for the lock of attempt 1 (Draining)",
    )
    world.run(lambda w: process.step > 0)
    world.reconcile()
    assert world.condition(world.writers["w"], "Admitted")["message"] == "attempt 2 is admitted"


def test_who_died_without_the_lock_is_followed_when_it_is_fenced() -> None:
    """No back-off for a first kill from outside (F260), no proof and no drain."""
    world = ready_world(fencing={"drainSeconds": 20})
    world.writer_hang_at = 1
    world.make_writer("w", retryPolicy={"backoffSeconds": 10})
    world.run(lambda w: (p := w.writer_process("w")) is not None and p.step == 1)
    for _ in range(15):
        world.reconcile()
        world.tick()
    victim = world.writer_process("w")
    assert victim is not None
    world.writer_hang_at = None
    began = world.now
    world.kill(victim)
    world.run(lambda w: bool(successor(w)), seconds=10)
    assert world.now - began <= 4
    assert phase(world, victim.inc) in ("Fenced", "Terminating", "Draining")
    assert "lock" not in world.kv


def test_it_is_not_made_before_the_proof() -> None:
    """A proof may never come, and who waits for it keeps a place and pods."""
    world, victim = died_with_the_lock(executors=1)
    executor = next(p for p in world.processes if p.role == "executor")
    executor.ignores_sigterm, executor.paused = True, True
    world.fail_node("n1", processes_die=False)
    world.run(lambda w: phase(w, victim.inc) == "Terminating")
    for _ in range(120):
        world.reconcile()
        world.tick()
    assert phase(world, victim.inc) == "Terminating"
    assert not successor(world)
    assert world.condition(world.writers["w"], "Admitted")["reason"] == "PreviousAttempt"


@pytest.mark.parametrize(("drain", "before"), [(20, 20), (60, 30), (300, 30)])
def test_a_long_drain_does_not_keep_it_waiting_for_long(drain: int, before: int) -> None:
    world, victim = died_with_the_lock(fencing={"drainSeconds": drain})
    world.run(lambda w: phase(w, victim.inc) == "Draining")
    began = world.now
    world.run(lambda w: bool(successor(w)), seconds=drain + 20)
    assert "lock" in world.kv
    assert drain - before - 1 <= world.now - began <= drain - before + 3


def test_a_program_waits_until_the_lock_is_free() -> None:
    """No commit compares the progress of a program."""
    world, victim = died_with_the_lock(writer=PROGRAM)
    world.run(lambda w: bool(successor(w)))
    assert world.kv.get("lock") is None or world.kv["lock"].value["inc"] != victim.inc


def test_nobody_starts_while_the_owner_of_the_lock_cannot_be_read() -> None:
    world, victim = died_with_the_lock(fencing={"drainSeconds": 20})
    world.put("lock", {"attempt": 7})
    world.run(lambda w: phase(w, victim.inc) in ("Draining", "Unlocked"), seconds=60)
    for _ in range(40):
        world.reconcile()
        world.tick()
    assert not successor(world)


def test_alone_at_the_table_it_follows_its_own_predecessor() -> None:
    """SingleWriter: another writer starts when the lock is free, the successor before."""
    world, victim = died_with_the_lock(fencing={"drainSeconds": 20}, concurrency={"mode": "SingleWriter"})
    world.edit(world.writers["w"], suspend=True)
    world.make_writer("other")
    world.run(lambda w: phase(w, victim.inc) == "Draining")
    for _ in range(5):
        world.reconcile()
        world.tick()
    assert world.writer_process("other") is None
    world.edit(world.writers["w"], suspend=False)
    world.edit(world.writers["other"], suspend=True)
    world.run(lambda w: bool(successor(w)), seconds=10)
    assert world.kv["lock"].value["inc"] == victim.inc


def test_a_number_that_only_etcd_remembers_is_not_given_again() -> None:
    """F612: the API server was set back to before attempt 1, whose process lives with the lock."""
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("w")
    world.run(at_step("w", 3))
    world.writer_hang_at = None
    victim = world.writer_process("w")
    assert victim is not None
    world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
    world.fail_node("n1", processes_die=False)
    victim.paused = True
    del world.pods[victim.pod], world.writers["w"]["status"]
    world.pass_time(100)
    assert world.kv["lock"].value["inc"] == victim.inc
    assert not successor(world)
    told = world.condition(world.writers["w"], "Admitted")
    assert told["reason"] == "PreviousAttempt"
    assert victim.pod_uid in told["message"]
    world.kill(victim)
    word = {"podUID": victim.pod_uid, "node": "n1", "statement": "cut off from power", "attestedBy": "ann"}
    word["at"] = "2026-01-01T00:00:00Z"
    world.change(fencing={"attestations": [word]})
    world.run(finished("w"))
    assert [a["number"] for a in world.writers["w"]["status"]["attempts"]] == [2]


def test_a_new_operator_drains_anew_and_the_successor_waits_for_that() -> None:
    world, victim = died_with_the_lock(fencing={"drainSeconds": 10})
    world.run(lambda w: bool(successor(w)), seconds=20)
    world.timers.clear()
    began = world.now
    world.run(lambda w: "lock" not in w.kv or w.kv["lock"].value["inc"] != victim.inc)
    assert world.now - began >= 9
    world.run(finished("w"))
