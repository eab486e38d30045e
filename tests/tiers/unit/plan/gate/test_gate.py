"""The gate (F8, F20), two tables on one path, and an etcd that cannot be trusted."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hudi_operator.plan.core import actions as act
from hudi_operator.plan.gate.trust import TAKE_OVER_ANNOTATION, UNFREEZE_ANNOTATION
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, World, at_step, finished, ready_world


def test_a_gate_is_made_closed_with_the_authority_that_was_passed_in() -> None:
    world = World()
    world.make_table()
    world.reconcile()
    plan = plan_table(replace(world.observe(), fresh_uuid="new-authority"), CONFIG)
    made = [a for a in plan.actions if isinstance(a, act.PutGate)]
    assert len(made) == 1
    assert made[0].expected_mod == 0
    gate = made[0].value
    assert gate["state"] == "closed"
    assert gate["authority"] == "new-authority"
    assert gate["path"] == "s3a://lake/flights"
    assert gate["lock"] == {
        "leaseSeconds": 10,
        "keepAliveSeconds": 3,
        "rpcTimeoutSeconds": 3,
        "silenceSeconds": 60,
        "maxClockSkewSeconds": 5,
        "drainSeconds": 10,
    }
    assert not any(isinstance(a, act.CreatePod) for a in plan.actions), "no agent before the gate is there"


def test_the_gate_stays_closed_on_the_word_of_an_agent_that_is_not_registered() -> None:
    world = World()
    world.make_table()
    world.reconcile()
    world.reconcile()
    world.put("report/timeline", {"agentInc": "somebody", "exists": True})
    for _ in range(3):
        world.reconcile()
    assert world.kv["gate"].value["state"] == "closed"


def test_a_revision_that_went_back_freezes_until_a_person_has_looked() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("running")
    world.run(at_step("running", 1))
    plan = plan_table(replace(world.observe(), revision_floor=world.revision + 100), CONFIG)
    frozen = [a for a in plan.actions if isinstance(a, act.PutGate)]
    assert frozen[0].value["state"] == "frozen"
    assert "went back" in frozen[0].value["reason"]
    world.perform(frozen[0])
    world.make_writer("later")
    for _ in range(5):
        world.reconcile()
        world.tick()
    assert world.condition(world.table, "Stalled")["reason"] == "Frozen"
    assert f"{UNFREEZE_ANNOTATION}={world.mod('gate')}" in world.condition(world.table, "Stalled")["message"]
    assert not any(n.startswith("later") for n in world.created)
    assert world.table is not None
    world.table["metadata"]["annotations"] = {UNFREEZE_ANNOTATION: "1"}
    world.reconcile()
    assert world.kv["gate"].value["state"] == "frozen", "an old word does not count"
    world.table["metadata"]["annotations"] = {UNFREEZE_ANNOTATION: str(world.mod("gate"))}
    world.writer_hang_at = None
    process = world.writer_process("running")
    assert process is not None
    process.hang_at = None
    world.run(lambda w: finished("running")(w) and finished("later")(w))


def test_an_accepted_floor_does_not_freeze_again() -> None:
    world = ready_world()
    gate = {**world.kv["gate"].value, "acceptedFloor": world.revision + 100}
    world.put("gate", gate)
    plan = plan_table(replace(world.observe(), revision_floor=world.revision + 50), CONFIG)
    assert not any(isinstance(a, act.PutGate) for a in plan.actions)


def test_an_etcd_that_was_set_back_freezes_although_its_revision_did_not_go_back() -> None:
    """F620: until a person has looked, and again when it is set back again."""
    world = ready_world()
    for lost in (700, 701):
        world.forgotten = lost
        world.reconcile()
        gate = world.kv["gate"].value
        assert gate["state"] == "frozen"
        assert f"nothing any more of its revision {lost}" in gate["reason"]
        world.run(lambda w: w.condition(w.table, "Stalled")["reason"] == "Frozen")
        unfreeze(world)
        world.run(lambda w: w.kv["gate"].value["state"] == "open")
        assert world.kv["gate"].value["acceptedFloor"] == lost


def unfreeze(world: World) -> None:
    """Annotate the HudiTable as its condition says."""
    assert world.table is not None
    word = re.search(rf"{UNFREEZE_ANNOTATION}=(\S+)", world.condition(world.table, "Stalled")["message"])
    assert word is not None
    world.table["metadata"]["annotations"] = {UNFREEZE_ANNOTATION: word[1]}


def frozen(world: World) -> bool:
    return bool(world.table) and world.condition(world.table, "Stalled").get("reason") == "Frozen"


def replace_table(world: World) -> None:
    """Delete the HudiTable, and create it again once it is gone."""
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: w.table is None)
    world.make_table()


def test_a_frozen_gate_stays_frozen_for_the_next_huditable() -> None:
    """F605: whoever may delete and create HudiTables is not whoever may unfreeze."""
    world = ready_world()
    world.forgotten = 700
    world.run(frozen)
    replace_table(world)
    world.run(frozen)
    for _ in range(5):
        world.reconcile()
        world.tick()
    gate = world.kv["gate"].value
    assert gate["state"] == "frozen"
    assert "nothing any more of its revision 700" in gate["reason"]
    unfreeze(world)
    world.run(lambda w: w.kv["gate"].value["state"] == "open")


def test_what_a_person_has_frozen_stays_so_for_the_next_huditable() -> None:
    """F605: its cause cannot be seen in etcd."""
    world = ready_world()
    world.put("gate", {**world.kv["gate"].value, "state": "frozen", "reason": "we are looking into it"})
    world.run(frozen)
    replace_table(world)
    world.run(frozen)
    assert "we are looking into it" in world.condition(world.table, "Stalled")["message"]
    unfreeze(world)
    world.run(lambda w: w.kv["gate"].value["state"] == "open")


@pytest.mark.parametrize("cause", ["set back", "another cluster"])
def test_a_gate_that_was_released_freezes_for_its_next_huditable(cause: str) -> None:
    """F605: nobody looked at a gate that no HudiTable has."""
    world = ready_world()
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: w.table is None)
    if cause == "set back":
        world.forgotten = 700
    else:
        world.put("gate", {**world.kv["gate"].value, "clusterId": "c0"})
    world.make_table()
    world.run(frozen)
    assert world.kv["gate"].value["table"] == "lake/flights"
    unfreeze(world)
    world.run(lambda w: w.kv["gate"].value["state"] == "open")


def test_a_word_lifts_one_freeze() -> None:
    """F606: the same backup, restored again, can freeze the gate with the same revision."""
    world = ready_world()
    world.forgotten = 700
    world.run(frozen)
    unfreeze(world)
    world.forgotten = 701  # and the annotation stands in the HudiTable
    plan = plan_table(world.observe(), CONFIG)
    assert not [a for a in plan.actions if isinstance(a, act.PutGate)]


def test_a_table_that_is_made_after_etcd_was_set_back_is_not_frozen() -> None:
    world = World(forgotten=700)
    world.make_table()
    world.run(lambda w: w.kv["gate"].value["state"] == "open" if "gate" in w.kv else False)
    assert world.kv["gate"].value["acceptedFloor"] == 700


def test_a_gate_from_another_cluster_freezes() -> None:
    world = ready_world()
    observed = world.observe()
    assert observed.etcd is not None
    plan = plan_table(replace(observed, etcd=replace(observed.etcd, cluster_id="c2")), CONFIG)
    assert [a.value["state"] for a in plan.actions if isinstance(a, act.PutGate)] == ["frozen"]


def test_an_empty_etcd_that_should_not_be_empty_gets_no_gate() -> None:
    world = World()
    world.make_table()
    world.reconcile()
    plan = plan_table(replace(world.observe(), revision_floor=10_000), CONFIG)
    assert not any(isinstance(a, act.PutGate | act.CreatePod) for a in plan.actions)


def test_another_lock_authority_freezes_an_open_gate() -> None:
    world = ready_world()
    world.table_error = {"code": "OtherLockAuthority", "message": "marker names authority x"}
    world.run(lambda w: w.condition(w.table, "Stalled")["reason"] == "OtherLockAuthority")
    assert world.kv["gate"].value["state"] == "frozen"


def test_an_odd_error_code_becomes_a_word_that_a_condition_may_carry() -> None:
    world = World(table_error={"code": "odd code!", "message": "m"})
    world.make_table()
    world.run(lambda w: w.condition(w.table, "Ready")["reason"] == "AgentError")


@pytest.mark.parametrize("namespace", ["lake", "secret-namespace"])
def test_the_first_table_keeps_its_path(namespace: str) -> None:
    world = ready_world()
    gate = {**world.kv["gate"].value, "table": f"{namespace}/owner", "tableUID": "uid-of-the-owner"}
    world.put("gate", gate)
    before = dict(world.kv)
    world.make_writer("mine")
    for _ in range(10):
        world.reconcile()
    for kind in ("gate", "assignment", "lock"):
        assert world.kv.get(kind) == before.get(kind), "nothing that belongs to the other table is touched"
    assert world.condition(world.table, "Stalled")["reason"] == "DuplicatePath"
    assert "secret-namespace" not in str(world.table)
    assert world.condition(world.writers["mine"], "Admitted")["reason"] == "TableStalled"
    assert "mine" not in str(world.created)
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: w.table is None, seconds=5)
    assert world.kv["gate"].value == gate


def test_a_table_made_again_under_its_name_takes_its_gate_over() -> None:
    world = ready_world()
    world.put("gate", {**world.kv["gate"].value, "tableUID": "uid-before"})
    world.run(
        lambda w: w.kv["gate"].value["tableUID"] == w.table["metadata"]["uid"] and w.kv["gate"].value["state"] == "open"
    )


def test_closing_keeps_those_who_run_admitted() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("running")
    world.run(at_step("running", 1))
    assert world.table is not None
    world.edit(world.table, lock={"leaseSeconds": 20})
    world.reconcile()
    gate = world.kv["gate"].value
    assert gate["state"] == "closed"
    assert gate["lock"]["leaseSeconds"] == 10
    process = world.writer_process("running")
    assert process is not None
    assert gate["admitted"] == [process.attempt]


def test_another_release_of_hudi_comes_when_those_of_the_old_one_have_ended() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("running")
    world.run(at_step("running", 1))
    assert world.table is not None
    assert world.kv["gate"].value["hudiVersion"] == "1.2.0"
    world.edit(world.table, hudiVersion="1.2.1", image="spark:next")
    world.make_writer("next")
    for _ in range(5):
        world.reconcile()
    gate = world.kv["gate"].value
    assert (gate["state"], gate["hudiVersion"]) == ("closed", "1.2.0"), (
        "whoever runs ends under the release that it began with"
    )
    assert world.condition(world.writers["next"], "Admitted")["status"] == "False"
    process = world.writer_process("running")
    assert process is not None
    process.hang_at = world.writer_hang_at = None
    world.run(lambda w: finished("running")(w) and finished("next")(w))
    gate = world.kv["gate"].value
    assert (gate["state"], gate["hudiVersion"]) == ("open", "1.2.1")


def test_the_gate_keeps_until_when_the_mode_was_non_blocking() -> None:
    """Commits of that time overlap, and the audit is not to call them wrong for ever."""
    bucket = {"type": "Bucket", "buckets": 4}
    world = ready_world(type="MergeOnRead", index=bucket, orderingFields=["ts"], concurrency={"mode": "NonBlocking"})
    world.put("clock", {"value": "20260101000000100"})
    assert world.table is not None
    assert "nonBlockingUntil" not in world.kv["gate"].value
    world.edit(world.table, concurrency={"mode": "Optimistic"})
    world.run(lambda w: w.kv["gate"].value["concurrency"] == "Optimistic" and w.kv["gate"].value["state"] == "open")
    until = world.kv["gate"].value["nonBlockingUntil"]
    assert until >= "20260101000000100"
    world.put("clock", {"value": "20990101000000100"})
    world.edit(world.table, concurrency={"mode": "Optimistic", "insertConflicts": "Partition"})
    world.run(lambda w: w.kv["gate"].value["insertConflicts"] == "Partition" and w.kv["gate"].value["state"] == "open")
    assert world.kv["gate"].value["nonBlockingUntil"] == until, "it stays, whatever else changes"


def of_another(world: World, *, gone: bool) -> None:
    """The gate names another HudiTable; whether the API server says that it does not exist."""
    gate = {**world.kv["gate"].value, "table": "secret-namespace/owner", "tableUID": "uid-of-the-owner"}
    world.put("gate", gate)
    seen = world.observe
    setattr(world, "observe", lambda: replace(seen(), owner_is_gone=gone and _is_owners(world)))  # noqa: B010


def _is_owners(world: World) -> bool:
    return bool(world.kv["gate"].value["tableUID"] == "uid-of-the-owner")


def word_to_take_over(world: World) -> str:
    """What the condition says; empty when it says none."""
    found = re.search(rf"{TAKE_OVER_ANNOTATION}=(\S+)", world.condition(world.table, "Stalled")["message"])
    return found[1] if found is not None else ""


def say(world: World, word: str) -> None:
    assert world.table is not None
    world.table["metadata"]["annotations"] = {TAKE_OVER_ANNOTATION: word}


def test_the_path_of_a_table_that_is_gone_is_taken_by_a_persons_word() -> None:
    """F618: never by itself, because another cluster may have that HudiTable."""
    world = ready_world()
    of_another(world, gone=True)
    for _ in range(20):
        world.reconcile()
        world.tick()
    assert world.kv["gate"].value["tableUID"] == "uid-of-the-owner"
    assert world.condition(world.table, "Stalled")["reason"] == "DuplicatePath"
    assert "secret-namespace" not in str(world.table)
    word = word_to_take_over(world)
    assert word
    say(world, word + "0")
    world.reconcile()
    assert world.kv["gate"].value["tableUID"] == "uid-of-the-owner", "another word does not count"
    say(world, word)
    world.reconcile()
    gate = world.kv["gate"].value
    assert (gate["state"], gate["table"], gate["tableUID"]) == ("frozen", "", "")
    world.make_writer("mine")
    world.run(finished("mine"))
    assert not word_to_take_over(world)


def test_an_old_word_takes_nothing() -> None:
    """The gate was put meanwhile: its owner lives somewhere."""
    world = ready_world()
    of_another(world, gone=True)
    world.reconcile()
    word = word_to_take_over(world)
    world.put("gate", dict(world.kv["gate"].value))
    say(world, word)
    world.reconcile()
    assert world.kv["gate"].value["tableUID"] == "uid-of-the-owner"


def test_no_word_takes_the_path_of_a_table_that_may_exist() -> None:
    world = ready_world()
    of_another(world, gone=False)
    world.reconcile()
    assert not word_to_take_over(world)
    say(world, str(world.mod("gate")))
    world.reconcile()
    assert world.kv["gate"].value["tableUID"] == "uid-of-the-owner"


def test_a_frozen_gate_that_is_taken_over_stays_frozen() -> None:
    """As after a deletion (F605)."""
    world = ready_world()
    world.put("gate", {**world.kv["gate"].value, "state": "frozen", "reason": "etcd was set back"})
    of_another(world, gone=True)
    world.reconcile()
    say(world, word_to_take_over(world))
    for _ in range(5):
        world.reconcile()
        world.tick()
    gate = world.kv["gate"].value
    assert (gate["state"], gate["reason"], gate["table"]) == ("frozen", "etcd was set back", "lake/flights")


def test_a_writer_of_the_table_that_is_gone_keeps_its_lock_until_its_end_is_proven() -> None:
    """I1: a word about the HudiTable is none about its pods."""
    world = ready_world()
    world.make_writer("running")
    world.writer_hang_at = 2
    world.run(at_step("running", 2))
    assert "lock" in world.kv
    locked = world.kv["lock"].value
    of_another(world, gone=True)
    world.reconcile()
    say(world, word_to_take_over(world))
    for _ in range(30):
        world.reconcile()
        world.tick()
    assert world.kv["gate"].value["table"] == "lake/flights"
    process = world.writer_process("running")
    assert "lock" not in world.kv or world.kv["lock"].value == locked
    assert "lock" in world.kv or process is None or not process.alive
