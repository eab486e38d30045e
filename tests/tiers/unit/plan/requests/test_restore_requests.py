"""Restore: the gate is closed for it, running writers finish, the agent undoes commits with nobody
beside, writers go on; once for each nonce.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_operator.api.spec import TableSpec
from hudi_operator.control.sibling_tables import read_sibling_tables
from hudi_operator.metrics.statuses import new_commits
from hudi_operator.plan.gate.trust import UNFREEZE_ANNOTATION
from tests.support.world.simulated_world import World, at_step, finished, ready_world

GOOD = {"savepoint": "good", "nonce": "n1"}


def with_savepoint() -> World:
    """A commit, its savepoint, and two commits after it."""
    world = ready_world()
    write(world, "first")
    assert world.table is not None
    world.edit(world.table, savepoints=[{"name": "good"}])
    world.run(lambda w: "done/savepoint-good" in w.kv and w.is_true(w.table, "Ready"))
    write(world, "second")
    write(world, "third")
    return world


def write(world: World, name: str) -> None:
    world.make_writer(name)
    world.run(finished(name))


def ask(world: World, **restore: str) -> None:
    assert world.table is not None
    world.edit(world.table, restore=restore)


def shown(world: World) -> dict[str, Any]:
    return dict((world.table or {}).get("status", {}).get("restore") or {})


def over(world: World) -> bool:
    return shown(world).get("outcome") == "Completed" and world.is_true(world.table, "Ready")


def look(world: World, times: int = 20) -> None:
    for _ in range(times):
        world.reconcile()
        world.tick()


def test_running_writers_finish_nobody_new_starts_and_then_commits_are_undone() -> None:
    world = with_savepoint()
    boundary, after = min(world.completed), sorted(world.completed)[1:]
    world.writer_hang_at = 3
    world.make_writer("running")
    world.run(at_step("running", 3))
    ask(world, **GOOD)
    world.writer_hang_at = None
    world.make_writer("later")
    look(world)
    assert world.kv["gate"].value["state"] == "closed"
    assert "restoring" not in world.kv["gate"].value, "not while a writer may still commit"
    assert shown(world) == {"nonce": "n1", "savepoint": "good", "outcome": "Pending"}
    assert not world.names("request")
    assert world.condition(world.writers["later"], "Admitted")["reason"] == "TableRestore"
    assert world.condition(world.table, "Ready")["reason"] == "Restore"
    process = world.writer_process("running")
    assert process is not None
    process.hang_at = None
    world.run(over)
    assert {*after, process.instant} <= world.undone
    assert boundary in world.completed
    completed = world.completion(boundary)
    assert shown(world)["boundaryCompletionTime"] == completed
    text = f"savepoint good (nonce n1): everything that completed after {completed} is undone, 3 instants"
    assert [e.message for e in world.events if e.reason == "Restored"] == [text]
    world.run(finished("later"))
    assert max(world.completed) > max(world.undone)
    assert not world.names("request"), "the request goes when it is done"
    assert "restoring" not in world.kv["gate"].value
    world.settle_down()


@pytest.mark.parametrize("begun", [False, True])
def test_an_etcd_that_was_set_back_does_not_restore_again(begun: bool) -> None:
    """F621: the backup is older than the restore, and a commit has followed it."""
    world = with_savepoint()
    ask(world, **GOOD)
    world.run(over)
    write(world, "fourth")
    committed = set(world.completed)
    record = world.kv.pop("done/restore-n1")
    if begun:  # the backup was made while it went on
        world.put("done/restore-n1", {**record.value, "result": "Running"})
    world.forgotten = 10_000
    world.run(lambda w: w.condition(w.table, "Stalled")["reason"] == "Frozen")
    assert world.table is not None
    world.table["metadata"]["annotations"] = {UNFREEZE_ANNOTATION: f"{world.mod('gate')}-{world.forgotten}"}
    world.run(lambda w: w.kv["gate"].value["state"] == "open")
    look(world)
    assert set(world.completed) == committed, "nothing is undone that was committed after it"
    assert shown(world)["outcome"] == ("Completed" if begun else "NotExecuted")
    ask(world, savepoint="good", nonce="n2")
    world.run(lambda w: shown(w).get("nonce") == "n2" and over(w))
    assert set(world.completed) < committed, "another nonce is carried out"


def test_a_nonce_is_carried_out_once_whatever_yaml_is_applied_again() -> None:
    world = with_savepoint()
    ask(world, **GOOD)
    world.run(over)
    write(world, "fourth")
    world.edit(world.table or {}, restore=None)
    look(world)
    ask(world, **GOOD)
    look(world)
    assert world.restored == ["n1"]
    ask(world, savepoint="good", nonce="n2")
    world.run(lambda w: over(w) and shown(w)["nonce"] == "n2")
    write(world, "fifth")
    ask(world, **GOOD)
    look(world)
    assert world.restored == ["n1", "n2"], "an older YAML does nothing either"
    assert shown(world)["outcome"] == "Completed"


def test_a_nonce_that_is_there_at_the_beginning_is_never_carried_out() -> None:
    """What stands in Git does not undo a table that is built anew, or given
    to another HudiTable.
    """
    world = ready_world(restore=GOOD, savepoints=[{"name": "good"}])
    write(world, "first")
    look(world)
    assert shown(world)["outcome"] == "NotExecuted"
    assert world.kv["gate"].value["restoreBaseline"] == "n1"
    assert not world.restored
    ask(world, savepoint="good", nonce="n2")
    world.run(lambda w: shown(w)["outcome"] == "Failed" and w.is_true(w.table, "Ready"))
    ask(world, **GOOD)
    look(world)
    assert not world.restored


def test_a_refusal_opens_the_gate_and_is_not_repeated() -> None:
    world = with_savepoint()
    ask(world, savepoint="bad", nonce="n1")
    world.run(lambda w: shown(w).get("outcome") == "Failed" and w.is_true(w.table, "Ready"))
    assert shown(world)["message"] == "this HudiTable has taken no savepoint bad"
    assert [e.message for e in world.events if e.reason == "RestoreFailed"] == [
        "savepoint bad (nonce n1): this HudiTable has taken no savepoint bad"
    ]
    assert len(world.completed) == 3
    write(world, "fourth")
    world.settle_down()


@pytest.mark.parametrize("step", range(1, 7))
def test_an_agent_that_dies_in_it_is_settled_and_the_next_one_goes_on(step: int) -> None:
    world = with_savepoint()
    boundary = min(world.completed)
    ask(world, **GOOD)
    world.restore_hang_at = step
    world.run(lambda w: (p := w.agent_process()) is not None and p.step >= step)
    process = world.agent_process()
    assert process is not None
    world.kill(process)
    world.restore_hang_at = None
    world.make_writer("later")
    world.run(lambda w: over(w) and finished("later")(w))
    assert world.restored == ["n1"]
    assert boundary in world.completed
    assert len(world.undone) == 2


@pytest.mark.parametrize("every", [2, 3, 5])
def test_the_operator_may_die_in_it_anywhere(every: int) -> None:
    world = with_savepoint()
    ask(world, **GOOD)
    world.make_writer("later")
    world.run(lambda w: over(w) and finished("later")(w), crash_every=every)
    assert world.restored == ["n1"]


@pytest.mark.parametrize("step", [0, 1, 3])
def test_what_has_begun_is_ended_and_what_has_not_may_be_withdrawn(step: int) -> None:
    world = with_savepoint()
    ask(world, **GOOD)
    world.restore_hang_at = step
    world.run(lambda w: "request/restore-n1" in w.kv and (p := w.agent_process()) is not None and p.step >= step)
    look(world, 5)
    if step == 1:
        process = world.agent_process()
        assert process is not None
        world.kill(process)  # with the lock, before its word
    begun = "done/restore-n1" in world.kv
    assert begun is (step == 3)
    world.edit(world.table or {}, restore=None, suspend=False)
    look(world, 5)
    world.restore_hang_at = None
    world.make_writer("later")
    world.run(lambda w: w.is_true(w.table, "Ready") and finished("later")(w))
    assert world.restored == (["n1"] if begun else [])
    assert len(world.undone) == (2 if begun else 0)


def test_a_withdrawn_request_moves_the_gate_before_it_opens() -> None:
    """Whoever has read the gate as closed for the restore compares its revision, and
    begins none (F8).
    """
    world = with_savepoint()
    ask(world, **GOOD)
    world.restore_hang_at = 0
    world.run(lambda w: "request/restore-n1" in w.kv)
    seen = []
    world.edit(world.table or {}, restore=None)
    for _ in range(10):
        world.reconcile()
        gate = world.kv["gate"].value
        seen.append((gate["state"], gate.get("restoring", "")))
        world.tick()
    assert [step for number, step in enumerate(seen) if step not in seen[:number]] == [("closed", ""), ("open", "")]


def test_a_deleted_table_waits_for_what_has_begun() -> None:
    world = with_savepoint()
    ask(world, **GOOD)
    world.restore_hang_at = 3
    world.run(lambda w: (p := w.agent_process()) is not None and p.step >= 3)
    assert world.table is not None
    world.delete(world.table)
    look(world)
    assert world.table is not None
    assert any("deletion waits for restore n1" in said for said in world.sentences)
    world.restore_hang_at = None
    world.run(lambda w: w.table is None)
    assert world.restored == ["n1"]


def test_the_commit_feed_tells_nothing_twice_when_the_timeline_gets_shorter() -> None:
    def status(*seconds: int) -> dict[str, Any]:
        times = [f"202601010000{second:02d}000" for second in seconds]
        commits = [{"instant": t, "action": "commit", "completionTime": t, "records": 1} for t in times]
        return {"timeline": {"lastCompletionTime": times[-1], "commits": commits}}

    assert new_commits(status(1, 2, 3), status(1)) == []
    assert [c.instant for c in new_commits(status(1), status(1, 9))] == ["20260101000009000"]


@pytest.mark.parametrize(("outcome", "used"), [("Running", True), ("Completed", False)])
def test_the_agent_of_a_deleted_table_stays_for_what_has_begun(outcome: str, used: bool) -> None:
    """Other HudiTables of the namespace look after agent pods, too."""
    metadata = {"namespace": "lake", "name": "flights", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"path": "s3a://lake/flights", "recordKeyFields": ["id"]}
    deleted = {
        "kind": "HudiTable",
        "metadata": metadata,
        "spec": spec,
        "status": {"restore": {"nonce": "1", "savepoint": "a", "outcome": outcome}},
    }

    async def list_objects(kind: str, namespace: str) -> list[dict[str, Any]]:
        return [deleted]

    kubernetes: Any = SimpleNamespace(list_objects=list_objects)
    etcd: Any = None
    found = asyncio.run(
        read_sibling_tables(
            ("lake", "other"),
            [],
            kubernetes=kubernetes,
            etcd=etcd,
            agent_of=lambda table, spec: spec.agent_name("x"),
        )
    )
    assert found.agents_in_use == (frozenset({TableSpec.from_object(deleted).agent_name("x")}) if used else frozenset())
