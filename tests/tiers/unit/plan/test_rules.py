"""Rules of the protocol that few histories reach: each was added because a mutation of its line
went unnoticed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_operator.control.loop import is_quiet
from hudi_operator.model.facts import PodFacts, PodName
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.core.view import build_view
from hudi_operator.plan.fencing.settling import proofs_missing
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_store import Key
from tests.support.world.simulated_world import CONFIG, World, all_settled, at_step, finished, ready_world

NOT_YET = Key({"proofs": {}}, 0, 0)
"""There is no settle record."""


def hung_writer(world: World, name: str = "w", step: int = 3, **spec: Any) -> Any:
    """A writer that hangs at a step, and its process."""
    world.writer_hang_at = step
    world.make_writer(name, **spec)
    world.run(at_step(name, step))
    process = world.writer_process(name)
    assert process is not None
    return process


def executor_of(process: Any, **labels: str) -> PodFacts:
    known = {naming.LABEL_ROLE: naming.ROLE_EXECUTOR, naming.LABEL_TABLE: "flights", **labels}
    return PodFacts(
        "lake",
        "an-executor",
        "uid-x",
        known,
        "Running",
        "n1",
        deleting=False,
        finalizers=(EVIDENCE_FINALIZER,),
        containers=(),
        controller=PodName(process.pod, process.pod_uid),
    )


def test_an_executor_is_known_by_its_owner() -> None:
    """F26: a pod template of the user's own may take our labels away, and the object of its driver
    may be gone.
    """
    world = ready_world()
    process = hung_writer(world)
    observed = world.observe()
    view = build_view(replace(observed, pods=(executor_of(process),)), CONFIG)
    assert [pod.name for pod in view.executors(process.pod)] == ["an-executor"]
    assert view.executors("another") == ()


@pytest.mark.parametrize("name_of", ["nobody", "another"])
def test_a_pod_that_only_names_a_driver_is_nobodys(name_of: str) -> None:
    """F356: it is neither deleted nor waited for.

    Anybody who may make pods may add the uid of a driver to its owners. A driver's executors have
    it as their controller, with its name.
    """
    world = ready_world()
    process = hung_writer(world)
    world.kill(process)
    world.run(lambda w: f"settle/{process.inc}" in w.kv)
    controller = None if name_of == "nobody" else PodName("theirs-1", process.pod_uid)
    theirs = replace(
        executor_of(process), name="theirs", labels={"spark-role": "executor"}, finalizers=(), controller=controller
    )

    def beside() -> Any:
        observed = world.observe()
        return replace(observed, pods=(*observed.pods, theirs))

    plan = plan_table(beside(), CONFIG)
    assert not [a for a in plan.actions if getattr(a, "uid", "") == theirs.uid]
    assert all(theirs.uid not in a.value["pods"] for a in plan.actions if isinstance(a, act.UpdateSettle))
    view = build_view(beside(), CONFIG)
    (inc,) = [i for i in view.incs if i.inc == process.inc]
    assert theirs.uid not in {subject.uid for subject, _ in proofs_missing(view, inc)}


def bare_world() -> tuple[World, Any, Any]:
    """A writer that hangs with the lock, and its executor, which has no label of ours."""
    world = ready_world()
    world.executors_per_driver, world.bare_executors = 1, True
    process = hung_writer(world, executors={"instances": 1})
    executor = next(p for p in world.processes if p.role == "executor")
    assert not set(world.pods[executor.pod].labels) & {naming.LABEL_ROLE, naming.LABEL_DRIVER}
    return world, process, executor


def test_an_executor_without_our_labels_is_settled_with_its_driver() -> None:
    """F51: it may write while nobody can see it.

    The world lets nothing be unlocked before it has ended (I1).
    """
    world, process, executor = bare_world()
    executor.ignores_sigterm = True
    world.kill(process)
    world.writer_hang_at = None
    world.run(finished("w"))
    assert not executor.alive
    assert executor.pod_uid in world.names("settle")[process.inc].value["proofs"]
    world.settle_down()
    assert executor.pod not in world.pods


def test_the_evidence_of_an_executor_without_our_labels_goes_like_any_other() -> None:
    """Of one that ended beside its living driver, and of one that is left when the
    driver has gone.
    """
    world, process, executor = bare_world()
    world.kill(executor)
    world.run(lambda w: executor.pod not in w.pods, seconds=30)
    assert process.alive
    world, process, executor = bare_world()
    executor.ignores_sigterm = True
    process.hang_at = None
    world.delete(world.writers["w"])
    world.run(lambda w: "w" not in w.writers, seconds=60)
    assert not executor.alive, "the HudiWriter waits for it"
    assert executor.pod not in world.pods


def test_an_executor_that_appears_last_is_proven_dead_too() -> None:
    """I1: its creation was on the way when the driver died.

    Executors are listed once more when the driver's proof is on record.
    """
    world = ready_world()
    process = hung_writer(world)
    world.kill(process)
    moved = False
    while not moved:
        plan = plan_table(world.observe(), CONFIG)
        proven = any(isinstance(a, act.UpdateSettle) and process.pod_uid in a.value["proofs"] for a in plan.actions)
        moved = any(isinstance(a, act.UpdateSettle) and a.value["phase"] == "Draining" for a in plan.actions)
        assert not (proven and moved and process.pod_uid not in world.names("settle")[process.inc].value["proofs"]), (
            "not listed once more"
        )
        world.reconcile()
        world.tick()
        assert world.now < 200
    record = {**world.names("settle")[process.inc].value, "phase": "Terminating"}
    world.put(f"settle/{process.inc}", record)
    observed = world.observe()
    plan = plan_table(replace(observed, pods=(*observed.pods, executor_of(process))), CONFIG)
    (update,) = [a for a in plan.actions if isinstance(a, act.UpdateSettle)]
    assert (update.value["phase"], set(update.value["pods"])) == ("Terminating", {"uid-x"})
    assert set(update.value["proofs"]) == {process.pod_uid}


def test_one_that_appears_last_is_looked_for_whatever_its_labels() -> None:
    """I1, F26, F51: its driver's evidence is gone by then; only the settle record asks for it."""
    world = ready_world()
    process = hung_writer(world)
    world.kill(process)
    world.run(lambda w: process.pod_uid in (w.names("settle").get(process.inc, NOT_YET).value["proofs"]))
    assert world.names("settle")[process.inc].value["phase"] == "Terminating"
    world.pods[process.pod].finalizers.clear()
    world.wide_at = world.now
    world.bare_executors = True
    world._make_executor(world.pods[process.pod], 7, process.inc)
    executor = world.processes[-1]
    executor.ignores_sigterm = True
    world.run(all_settled)
    assert executor.pod_uid in world.names("settle")[process.inc].value["proofs"]
    assert not executor.alive


def test_the_loss_of_an_executor_is_not_the_end_of_its_driver() -> None:
    """An executor that ends is taken away with its evidence.

    Nobody is fenced for it, and the job goes on.
    """
    world = ready_world()
    world.executors_per_driver = 2
    process = hung_writer(world)
    executor = next(p for p in world.processes if p.role == "executor")
    world.kill(executor)
    for _ in range(20):
        world.reconcile()
        world.tick()
    assert executor.pod not in world.pods
    assert not world.names("fence")
    process.hang_at = None
    world.run(finished("w"))
    assert [entry["class"] for entry in world.writers["w"]["status"]["attempts"]] == ["Succeeded"]


def test_a_fence_without_its_record_is_settled_all_the_same() -> None:
    """I6: they are put together; if a person has parted them, settling begins anew."""
    world = ready_world()
    process = hung_writer(world)
    world.put(f"fence/{process.inc}", {"inc": process.inc})
    plan = plan_table(world.observe(), CONFIG)
    assert [(a.inc, a.value["phase"], a.expected_mod) for a in plan.actions if isinstance(a, act.UpdateSettle)] == [
        (process.inc, "Fenced", 0)
    ]


def test_who_creates_the_table_may_hold_its_lock() -> None:
    """F21: an index may take hours; the gate is closed meanwhile, and only an agent does that."""
    world = ready_world(lock={"maxHoldSeconds": 10})
    agent = world.agent_process()
    assert agent is not None
    assert world.acquire(agent)

    def reasons() -> list[Any]:
        observed = world.observe()
        hold = f"hold/{world.kv['lock'].create}"
        return [
            a.settle["reason"]
            for a in plan_table(replace(observed, timers={**observed.timers, hold: 11.0}), CONFIG).actions
            if isinstance(a, act.Fence)
        ]

    assert reasons() == ["HeldTooLong"]
    gate = world.kv["gate"].value
    world.put("gate", {**gate, "state": "closed"})
    assert reasons() == ["HeldTooLong"], "F457: nothing is asked of it that takes so long"
    world.put("request/service-clean", {"id": "service-clean"})
    assert reasons() == ["HeldTooLong"], "services run beside writers"
    world.put("request/metadata", {"id": "metadata", "nonce": "n"})
    assert reasons() == []
    world.drop("request/metadata")
    assert reasons() == ["HeldTooLong"]
    world.put("instant/20260101000000001", {"inc": agent.inc, "action": "restore", "state": "Pending"})
    assert reasons() == []
    world.drop("instant/20260101000000001")
    world.put("gate", {**gate, "state": "closed", "adopted": False})
    assert reasons() == []


def test_a_limit_beyond_ten_is_kept() -> None:
    world = ready_world()
    world.exit_codes = [11] * 30
    world.make_writer("w", retryPolicy={"limit": 12, "backoffSeconds": 1, "maxBackoffSeconds": 1})
    world.run(lambda w: w.is_true(w.writers["w"], "Finished"), seconds=2000)
    assert world.writers["w"]["status"]["attempt"] == 13
    assert world.condition(world.writers["w"], "Finished")["reason"] == "Failed"


def test_a_failed_run_stays_so_while_its_spec_cannot_be_read() -> None:
    """F433: an upgrade reads more strictly for a while, and every failed writer began again."""
    world = ready_world()
    world.exit_codes = [11] * 30
    world.make_writer("w", restartNonce="a", retryPolicy={"limit": 1, "backoffSeconds": 1, "maxBackoffSeconds": 1})
    world.run(lambda w: w.is_true(w.writers["w"], "Finished"), seconds=2000)
    before = world.writers["w"]["status"]
    world.edit(world.writers["w"], operation="OfAnotherVersion")
    world.run(lambda w: w.condition(w.writers["w"], "Stalled")["reason"] == "InvalidSpec")
    unread = world.writers["w"]["status"]
    for name in ("executedNonce", "mode", "attempts", "attempt"):
        assert unread[name] == before[name], name
    world.edit(world.writers["w"], operation="Upsert")
    for _ in range(100):
        world.reconcile()
        world.tick()
    assert world.condition(world.writers["w"], "Finished")["reason"] == "Failed"
    assert world.writers["w"]["status"]["attempt"] == before["attempt"]
    world.edit(world.writers["w"], restartNonce="b")
    world.run(lambda w: w.writers["w"]["status"]["attempt"] > before["attempt"])


@pytest.mark.parametrize("waits_for", ["nothing", "a place", "the end of its suspension", "another option"])
def test_a_restart_begins_a_run_whatever_it_waits_for(waits_for: str) -> None:
    """F463: it went on with the run that had failed."""
    world = ready_world(concurrency={"maxWriters": 1})
    world.exit_codes = [11] * 2
    world.make_writer("w", restartNonce="a", retryPolicy={"limit": 1, "backoffSeconds": 1, "maxBackoffSeconds": 1})
    world.run(lambda w: w.is_true(w.writers["w"], "Finished"), seconds=2000)
    world.writer_hang_at = 1
    if waits_for == "a place":
        world.make_writer("other")
        world.run(at_step("other", 1))
    options = {"hoodie.write.lock.provider": "x"} if waits_for == "another option" else {}
    suspend = waits_for == "the end of its suspension"
    world.edit(world.writers["w"], restartNonce="b", suspend=suspend, hudiOptions=options)
    for _ in range(10):
        world.reconcile()
        world.tick()
    begun = waits_for == "nothing"
    assert world.condition(world.writers["w"], "Finished")["status"] == str(not begun)
    assert is_quiet(world.observe()), "what it waits for comes as an event"
    world.writer_hang_at = None
    for process in world.processes:
        process.hang_at = None
    world.edit(world.writers["w"], suspend=False, hudiOptions={})
    world.run(lambda w: w.is_true(w.writers["w"], "Succeeded"))
    assert [entry["run"] for entry in world.writers["w"]["status"]["attempts"]] == [1, 1, 2]


def test_a_run_that_has_failed_stays_so_while_its_schedule_is_wrong() -> None:
    """F460."""
    world = ready_world()
    world.exit_codes = [11] * 30
    world.make_writer("w", retryPolicy={"limit": 1, "backoffSeconds": 1, "maxBackoffSeconds": 1})
    world.run(lambda w: w.is_true(w.writers["w"], "Finished"), seconds=2000)
    before = world.writers["w"]["status"]["attempt"]
    world.edit(world.writers["w"], schedule={"cron": "61 * * * *"})
    world.run(lambda w: w.condition(w.writers["w"], "Stalled")["reason"] == "InvalidSpec")
    assert world.condition(world.writers["w"], "Finished")["reason"] == "Failed"
    del world.writers["w"]["spec"]["schedule"]
    world.edit(world.writers["w"])
    for _ in range(100):
        world.reconcile()
        world.tick()
    assert world.condition(world.writers["w"], "Finished")["reason"] == "Failed"
    assert world.writers["w"]["status"]["attempt"] == before


def test_an_attempt_that_may_still_register_is_waited_for() -> None:
    """F5, F23: its admission stands.

    It may register, lock and commit what the next one would commit again.
    """
    world = ready_world()
    world.exit_codes = [11]
    world.make_writer("w", retryPolicy={"limit": 3, "backoffSeconds": 1, "maxBackoffSeconds": 1})
    world.run(lambda w: any(e.get("class") for e in w.writers["w"].get("status", {}).get("attempts", [])))
    for _ in range(3):
        world.reconcile()
        world.tick()
        attempts = world.writers["w"]["status"]["attempts"]
        if len(attempts) == 1:
            break
    first = naming.attempt_id("lake", attempts[0]["pod"])
    world.writers["w"]["status"] = {**world.writers["w"]["status"], "attempts": attempts[:1], "attempt": 1}
    world.put(f"admit/{first}", {"attempt": first, "role": "writer"})
    plan = plan_table(replace(world.observe(), now_ms=world.now_ms + 60_000), CONFIG)
    assert not [a for a in plan.actions if isinstance(a, act.CreatePod)]
    (status,) = [a.status for a in plan.actions if isinstance(a, act.UpdateStatus) and a.kind == "HudiWriter"]
    assert next(c["reason"] for c in status["conditions"] if c["type"] == "Admitted") == "PreviousAttempt"


def test_a_single_writer_waits_for_whoever_may_still_publish() -> None:
    """I9: without conflict checks, nobody starts beside an incarnation of a writer
    that was deleted.
    """
    world = ready_world(concurrency={"mode": "SingleWriter"})
    world.put(
        "writer/ghost", {"inc": "ghost", "attempt": "lake.gone-00000000-1", "podUID": "uid-of-nobody", "role": "writer"}
    )
    world.put("alive/ghost", {"inc": "ghost"})
    world.make_writer("w")
    for _ in range(4):
        world.reconcile()
    assert world.condition(world.writers["w"], "Admitted")["reason"] == "SingleWriter"
    assert not any(name.startswith("w-") for name in world.created)
    world.drop("writer/ghost")
    world.drop("alive/ghost")
    world.run(finished("w"))


def test_settling_follows_the_mode_that_writers_run_under() -> None:
    """F8: a change to LeaseOnly that is not in force yet takes no lock away."""
    world = ready_world()
    process = hung_writer(world)
    process.paused = True
    assert world.table is not None
    world.edit(world.table, fencing={"mode": "LeaseOnly"})
    world.run(lambda w: f"fence/{process.inc}" in w.kv)
    assert build_view(world.observe(), CONFIG).mode == "PodTermination"
    plan = plan_table(world.observe(), CONFIG)
    assert not [a for a in plan.actions if isinstance(a, act.Unlock)]
    world.run(lambda w: "lock" not in w.kv)
    assert not process.alive


def test_an_agents_pod_stays_while_it_is_not_known_who_needs_it() -> None:
    """I11: the other tables of the namespace could not be read."""
    world = ready_world()
    agent = world.agent_process()
    assert agent is not None
    world.kill(agent)
    world.run(
        lambda w: (
            w.pods[agent.pod].phase == "Failed"
            and agent.inc in w.names("settle")
            and w.names("settle")[agent.inc].value["phase"] == "Settled"
        )
    )
    observed = world.observe()
    (pod,) = [p for p in observed.pods if p.uid == agent.pod_uid]
    pods = tuple(replace(p, finalizers=(EVIDENCE_FINALIZER,)) if p is pod else p for p in observed.pods)

    def about(**known: Any) -> list[str]:
        plan = plan_table(replace(observed, **{"pods": pods, **known}), CONFIG)
        return [type(a).__name__ for a in plan.actions if getattr(a, "uid", "") == agent.pod_uid]

    nobody: frozenset[str] = frozenset()
    assert about(agents_in_use=nobody, evidence_needed=nobody) == ["DropEvidence"]
    assert about(agents_in_use=None, evidence_needed=None) == []
    assert about(agents_in_use=nobody, evidence_needed=frozenset({agent.pod_uid})) == []

    # F290: what other tables need is read of pods that have ended or are deleted. This one's node
    # has been proven dead, and its status says nothing of that.
    running = tuple(replace(p, phase="Running", containers=()) if p.uid == pod.uid else p for p in pods)
    deleted = tuple(replace(p, deleting=True) if p.uid == pod.uid else p for p in running)
    known = {"agents_in_use": frozenset({pod.labels[naming.LABEL_AGENT]}), "evidence_needed": nobody}
    assert about(**known, pods=running) == ["DeletePod"]
    assert about(**known, pods=deleted) == ["DropEvidence"]

    # F615: a registration that is on its way would be of a pod without any object.
    world.put(f"admit/{agent.attempt}", {"attempt": agent.attempt, "role": "agent"})
    plan = plan_table(replace(world.observe(), pods=pods, agents_in_use=nobody, evidence_needed=nobody), CONFIG)
    about_it = {type(a) for a in plan.actions if agent.pod_uid == getattr(a, "uid", "")}
    assert about_it == set()
    assert {a.attempt for a in plan.actions if isinstance(a, act.DeleteAdmit)} == {agent.attempt}
