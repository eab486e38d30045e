"""What users ask for, in the simulated world: suspension, retries, the order of writers, modes,
errors that they have to mend.
"""

from __future__ import annotations

import pytest

from hudi_contract import naming
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_store import ConflictError
from tests.support.world.simulated_world import (
    CONFIG,
    NAMESPACE,
    World,
    at_step,
    finished,
    no_evidence_left,
    ready_world,
)


def test_suspend_and_resume() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("backfill", stop={"graceSeconds": 5})
    world.run(at_step("backfill", 1))
    world.edit(world.writers["backfill"], suspend=True)
    world.run(lambda w: w.is_true(w.writers["backfill"], "Suspended"))
    assert world.writers["backfill"]["status"]["attempts"][0]["class"] == "Cancelled"
    world.settle_down()
    world.writer_hang_at = None
    world.edit(world.writers["backfill"], suspend=False)
    world.run(finished("backfill"))
    assert world.is_true(world.writers["backfill"], "Succeeded")


def test_table_suspended_stops_and_starts_nobody() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("a", stop={"graceSeconds": 5})
    world.run(at_step("a", 1))
    assert world.table is not None
    world.edit(world.table, suspend=True)
    world.make_writer("b")
    world.run(lambda w: w.is_true(w.writers["a"], "Suspended") and w.is_true(w.writers["b"], "Suspended"))
    assert not any(n.startswith("b-") for n in world.created)
    world.writer_hang_at = None
    world.edit(world.table, suspend=False)
    world.run(lambda w: finished("a")(w) and finished("b")(w))


def test_retries_end_in_failed_and_a_new_nonce_starts_over() -> None:
    world = ready_world()
    world.exit_codes = [13, 13, 13]
    world.make_writer("backfill", retryPolicy={"limit": 2, "backoffSeconds": 1, "maxBackoffSeconds": 2})
    world.run(finished("backfill"))
    writer = world.writers["backfill"]
    assert world.condition(writer, "Finished")["reason"] == "Failed"
    assert writer["status"]["attempt"] == 3
    world.settle_down()
    world.edit(writer, priority=3)
    world.settle_down()
    assert writer["status"]["attempt"] == 3
    world.exit_codes = [13]
    world.edit(writer, restartNonce="again")
    world.run(lambda w: w.is_true(w.writers["backfill"], "Succeeded"))
    assert writer["status"]["attempt"] == 5
    assert writer["status"]["executedNonce"] == "again"
    world.settle_down()


def test_a_nonce_that_is_there_from_the_start_is_not_executed() -> None:
    world = ready_world()
    world.make_writer("backfill", restartNonce="x")
    world.run(finished("backfill"))
    world.settle_down()
    assert world.writers["backfill"]["status"]["attempt"] == 1


def test_user_error_is_not_retried() -> None:
    world = ready_world()
    world.exit_codes = [10]
    world.make_writer("backfill")
    world.run(finished("backfill"))
    assert world.writers["backfill"]["status"]["attempt"] == 1
    assert world.is_true(world.writers["backfill"], "Stalled")


def test_max_writers_and_priority() -> None:
    world = ready_world(concurrency={"mode": "SingleWriter"})
    world.writer_hang_at = 3
    world.make_writer("first")
    world.run(at_step("first", 3))
    world.make_writer("low", priority=-10)
    world.make_writer("high", priority=10)
    for _ in range(4):
        world.reconcile()
        world.tick()
    assert world.writers["high"]["status"]["queue"].items() >= {"position": 1, "blockedBy": "first"}.items()
    assert world.writers["low"]["status"]["queue"]["position"] == 2
    assert "first" in world.condition(world.writers["high"], "Admitted")["message"]
    world.writer_hang_at = None
    hung = world.writer_process("first")
    assert hung is not None
    hung.hang_at = None
    world.run(lambda w: all(finished(n)(w) for n in ("first", "low", "high")))
    order = [n.split("-")[0] for n in world.created if not n.startswith("hudi-agent")]
    assert order == ["first", "high", "low"]


def test_many_writers_all_finish_and_one_dies() -> None:
    world = ready_world(concurrency={"maxWriters": 3})
    for number in range(5):
        world.make_writer(f"w{number}")
    world.run(at_step("w1", 3))
    victim = world.writer_process("w1")
    assert victim is not None
    world.kill(victim)
    world.run(lambda w: all(finished(f"w{n}")(w) for n in range(5)))
    assert all(world.is_true(w, "Succeeded") for w in world.writers.values())
    world.settle_down()


def test_mode_changes_only_without_writers() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("old")
    world.run(at_step("old", 1))
    assert world.table is not None
    world.edit(world.table, fencing={"mode": "LeaseOnly"})
    world.make_writer("new")
    for _ in range(10):
        world.reconcile()
        world.tick()
    gate = world.kv["gate"].value
    assert gate["state"] == "closed"
    assert gate["mode"] == "PodTermination"
    assert [a.split(".")[1].split("-")[0] for a in gate["admitted"]] == ["old"]
    assert world.condition(world.writers["new"], "Admitted")["reason"] == "TableChanging"
    world.writer_hang_at = None
    hung = world.writer_process("old")
    assert hung is not None
    hung.hang_at = None
    world.run(lambda w: finished("old")(w) and finished("new")(w))
    assert world.kv["gate"].value["mode"] == "LeaseOnly"
    assert (
        "unsafe" in world.condition(world.table, "Ready")["message"]
        or "corrupt" in world.condition(world.table, "Ready")["message"]
    )


@pytest.mark.parametrize(("before", "after"), [("LeaseOnly", "PodTermination"), ("PodTermination", "LeaseOnly")])
def test_the_mode_changes_only_while_nobody_holds_the_lock(before: str, after: str) -> None:
    """F436: the agent's lock has the lease, or none, of the mode in which it was acquired."""
    world = ready_world(fencing={"mode": before})
    agent = world.agent_process()
    assert agent is not None
    world.put("lock", {"inc": agent.inc, "attempt": agent.attempt, "podUID": agent.pod_uid, "role": "agent"})
    assert world.table is not None
    world.edit(world.table, fencing={"mode": after})
    for _ in range(3):
        world.reconcile()
    gate = world.kv["gate"].value
    assert (gate["state"], gate["mode"]) == ("closed", before)
    put = act.PutGate("t", {**gate, "mode": after}, world.mod("gate"), unlocked=True)
    with pytest.raises(ConflictError):
        world.perform(put)
    world.drop("lock")
    plan = plan_table(world.observe(), CONFIG)
    (change,) = [a for a in plan.actions if isinstance(a, act.PutGate)]
    assert (change.value["mode"], change.unlocked) == (after, True), "it may be acquired before it is put"
    world.run(lambda w: w.kv["gate"].value["mode"] == after and w.kv["gate"].value["state"] == "open")


def test_an_agent_that_hangs_with_the_lock_delays_a_change_of_the_mode_and_no_more() -> None:
    """F457: it is fenced as it is behind an open gate, and Ready names it."""
    world = ready_world(fencing={"mode": "PodTermination", "drainSeconds": 1}, lock={"maxHoldSeconds": 10})
    agent = world.agent_process()
    assert agent is not None
    agent.hang_at = agent.step
    assert world.acquire(agent)
    assert world.table is not None
    world.edit(world.table, fencing={"mode": "LeaseOnly", "drainSeconds": 1})
    world.run(lambda w: agent.attempt in w.condition(w.table, "Ready")["message"], seconds=5)
    assert world.condition(world.table, "Ready")["reason"] == "Changing"
    world.run(lambda w: w.kv["gate"].value["mode"] == "LeaseOnly" and w.kv["gate"].value["state"] == "open")
    assert [key.value["reason"] for key in world.names("settle").values()] == ["HeldTooLong"]


def test_lease_only_waits_for_no_proof() -> None:
    world = ready_world(fencing={"mode": "LeaseOnly"})
    world.writer_hang_at = 3
    world.make_writer("paused")
    world.run(at_step("paused", 3))
    victim = world.writer_process("paused")
    assert victim is not None
    victim.paused, victim.ignores_sigterm = True, True
    world.writer_hang_at = None
    world.make_writer("other")
    world.run(finished("other"), seconds=60)
    world.run(lambda w: not victim.alive)
    world.run(finished("paused"))
    world.run(lambda w: no_evidence_left(w, "paused"))


def test_storage_error_is_reported() -> None:
    world = World(table_error={"code": "StorageUnreachable", "message": "403 Forbidden"})
    world.make_table()
    world.make_writer("backfill")
    world.run(lambda w: w.condition(w.table, "Ready")["reason"] == "StorageUnreachable", seconds=60)
    assert "403" in world.condition(world.table, "Ready")["message"]
    assert not world.is_true(world.table, "Stalled")
    assert "403" in world.condition(world.writers["backfill"], "Admitted")["message"]
    world.table_error = None
    world.run(finished("backfill"))


def test_mismatch_stalls_the_table() -> None:
    world = World(table_error={"code": "TableMismatch", "message": "recordKeyFields: spec 'id', table 'key'"})
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Stalled"))
    assert world.condition(world.table, "Stalled")["reason"] == "TableMismatch"
    assert world.kv["gate"].value["state"] == "closed"


def test_authority_survives_deletion_of_the_table() -> None:
    """The table's marker names the authority: the next HudiTable must have the same one."""
    world = ready_world()
    authority = world.kv["gate"].value["authority"]
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: w.table is None)
    assert world.kv["gate"].value["state"] == "frozen"
    assert world.kv["gate"].value["tableUID"] == ""
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert world.kv["gate"].value["authority"] == authority


CATALOG = {
    "hiveMetastore": {"uris": ["thrift://metastore.catalogs.svc:9083"]},
    "timeoutSeconds": 30,
    "onDelete": "Drop",
}


def _listed_and_deleted() -> World:
    """A HudiTable whose entries are in a catalog, deleted while a writer is at work."""
    world = ready_world(catalog=CATALOG)
    assert world.table is not None
    target = f"{CATALOG['hiveMetastore']['uris'][0]} default.flights {world.table['metadata']['uid']}"  # type: ignore[index]
    shown = {"inc": "agent", "target": target, "instant": "20260101000000001", "completionTime": "20260101000000002"}
    world.put("report/catalog", shown)
    world.writer_hang_at = 1
    world.make_writer("backfill", stop={"graceSeconds": 5})
    world.run(at_step("backfill", 1))
    world.delete(world.writers["backfill"])
    world.delete(world.table)
    world.run(lambda w: (w.kv["assignment"].value.get("catalog") or {}).get("drop", False))
    return world


def test_a_deleted_tables_agent_drops_its_entries_first() -> None:
    world = _listed_and_deleted()
    pod = max(pod.name for pod in world.pods.values() if "agent" in pod.name)
    for _ in range(20):
        world.tick()
        world.reconcile()
    assert world.table is not None
    assert world.pods[pod].deleting_since is None, "no writer is left, and the agent is still needed"
    assert world.condition(world.table, "CatalogSynced")["reason"] == "Dropping"
    world.put("report/catalog", {**world.kv["report/catalog"].value, "dropped": True})
    world.run(lambda w: w.table is None)
    assert "assignment" not in world.kv
    assert [event.reason for event in world.events if event.reason.startswith("CatalogEntry")] == [
        "CatalogEntryDropped"
    ]


def test_a_catalog_that_does_not_answer_keeps_no_table() -> None:
    world = _listed_and_deleted()
    since = world.now
    world.run(lambda w: w.table is None)
    assert 100 <= world.now - since <= 240
    assert [event.reason for event in world.events if event.reason.startswith("CatalogEntry")] == ["CatalogEntryKept"]


def test_waiting_for_a_missing_table() -> None:
    world = World()
    world.make_writer("early")
    world.run(lambda w: w.condition(w.writers["early"], "Admitted")["reason"] == "TableNotFound", seconds=5)
    world.settle_down()
    world.make_table()
    world.run(finished("early"))


def test_storage_changes_move_the_table_to_another_agent() -> None:
    world = ready_world()
    first = world.agent_process()
    assert first is not None
    assert world.table is not None
    world.edit(world.table, storage={"serviceAccountName": "other"})
    world.run(lambda w: (w.agent_process() or first) is not first and w.is_true(w.table, "Ready") and not first.alive)
    world.settle_down()
    assert first.pod not in world.pods


def test_names_belong_to_the_namespace() -> None:
    world = ready_world()
    agent = world.agent_process()
    assert agent is not None
    assert naming.split_attempt(agent.attempt) == (NAMESPACE, agent.pod)
