"""Savepoints: the gate is closed, running writers finish, the agent takes it with nobody beside,
writers go on.
"""

from __future__ import annotations

from typing import Any

from tests.support.world.simulated_world import World, at_step, finished, ready_world


def shown(world: World) -> list[dict[str, Any]]:
    return list((world.table or {}).get("status", {}).get("savepoints") or [])


def outcomes(world: World) -> dict[str, str]:
    return {entry["name"]: entry["outcome"] for entry in shown(world)}


def test_running_writers_finish_nobody_new_starts_and_then_it_is_taken() -> None:
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("running")
    world.run(at_step("running", 3))
    assert world.table is not None
    world.edit(world.table, savepoints=[{"name": "before-load"}])
    world.writer_hang_at = None
    world.make_writer("later")
    for _ in range(20):
        world.reconcile()
        world.tick()
    assert world.kv["gate"].value["state"] == "closed"
    assert outcomes(world) == {"before-load": "Pending"}
    assert not world.names("request"), "not asked for while a writer runs"
    assert world.condition(world.writers["later"], "Admitted")["reason"] == "TableSavepoint"
    assert world.condition(world.table, "Ready")["reason"] == "Savepoint"
    assert not any(name.startswith("later") for name in world.created)
    process = world.writer_process("running")
    assert process is not None
    process.hang_at = None
    world.run(lambda w: outcomes(w) == {"before-load": "Completed"})
    commit = max(world.completed)
    assert (shown(world)[0]["instant"], shown(world)[0]["boundaryCompletionTime"]) == (commit, world.completion(commit))
    text = f"savepoint before-load keeps instant {commit} and everything completed until {world.completion(commit)}"
    assert [e.message for e in world.events if e.reason == "SavepointTaken"] == [text]
    world.run(finished("later"))
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert not world.names("request"), "the request goes when it is done"
    world.settle_down()


def test_the_operator_may_die_in_it_anywhere() -> None:
    world = ready_world()
    world.make_writer("first")
    world.run(finished("first"))
    assert world.table is not None
    world.edit(world.table, savepoints=[{"name": "a"}, {"name": "b"}])
    world.run(
        lambda w: outcomes(w) == {"a": "Completed", "b": "Completed"} and w.is_true(w.table, "Ready"), crash_every=2
    )


def test_a_dead_writer_is_settled_before() -> None:
    world = ready_world()
    world.writer_hang_at = 3
    world.make_writer("dies")
    world.run(at_step("dies", 3))
    world.writer_hang_at = None
    process = world.writer_process("dies")
    assert process is not None
    assert world.table is not None
    world.edit(world.table, savepoints=[{"name": "a"}])
    world.reconcile()
    world.kill(process)
    world.run(lambda w: outcomes(w).get("a") in ("Completed", "Failed"))
    assert process.instant in world.rolled_back


def test_one_that_failed_opens_the_gate_and_is_not_tried_again_under_its_name() -> None:
    world = ready_world(savepoints=[{"name": "early"}])
    world.run(lambda w: outcomes(w) == {"early": "Failed"} and w.is_true(w.table, "Ready"))
    assert [e.message for e in world.events if e.reason == "SavepointFailed"] == [
        "savepoint early: the active timeline has no commit"
    ]
    world.make_writer("first")
    world.run(finished("first"))
    world.settle_down()
    assert outcomes(world) == {"early": "Failed"}
    assert world.table is not None
    world.edit(world.table, savepoints=[{"name": "early"}, {"name": "again"}])
    world.run(lambda w: outcomes(w) == {"early": "Failed", "again": "Completed"})


def test_taking_the_name_away_lets_writers_go_on() -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("long")
    world.run(at_step("long", 1))
    assert world.table is not None
    world.edit(world.table, savepoints=[{"name": "a"}])
    world.run(lambda w: w.kv["gate"].value["state"] == "closed")
    world.edit(world.table, savepoints=[])
    world.run(lambda w: w.kv["gate"].value["state"] == "open")
    assert "done/savepoint-a" not in world.kv


def test_a_table_is_adopted_before_its_savepoint() -> None:
    world = World(foreign={"20260101000000000": "commit"})
    world.make_table(savepoints=[{"name": "a"}])
    for _ in range(30):
        world.reconcile()
        world.tick()
    assert not world.names("request")
    assert world.condition(world.table, "Stalled")["reason"] == "PendingInstants"


# ---- deletions


def with_a_savepoint() -> World:
    world = ready_world()
    world.make_writer("first")
    world.run(finished("first"))
    world.change(savepoints=[{"name": "a"}])
    world.run(lambda w: outcomes(w) == {"a": "Completed"} and w.is_true(w.table, "Ready"))
    return world


def goes_on(world: World, steps: int = 20) -> None:
    for _ in range(steps):
        world.reconcile()
        world.tick()


def test_one_is_deleted_beside_a_running_writer() -> None:
    world = with_a_savepoint()
    world.writer_hang_at = 1
    world.make_writer("running")
    world.run(at_step("running", 1))
    instant = shown(world)[0]["instant"]
    world.change(savepoints=[{"name": "a", "deleteInstant": instant}])
    states = set[str]()

    def deleted(w: World) -> bool:
        states.add(w.kv["gate"].value["state"])
        return outcomes(w) == {"a": "Deleted"} and not w.names("request")

    world.run(deleted)
    assert states == {"open"}
    told = [e.message for e in world.events if e.reason == "SavepointDeleted"]
    assert told == [f"savepoint a of instant {instant} is deleted"]


def test_an_older_manifest_neither_takes_it_again_nor_deletes_another_one() -> None:
    world = with_a_savepoint()
    instant = shown(world)[0]["instant"]
    world.change(savepoints=[{"name": "a", "deleteInstant": instant}])
    world.run(lambda w: outcomes(w) == {"a": "Deleted"})
    world.change(savepoints=[])
    goes_on(world)
    for entry in ({"name": "a"}, {"name": "a", "deleteInstant": instant}):
        world.change(savepoints=[entry])
        goes_on(world)
        assert outcomes(world) == {"a": "Deleted"}
        assert world.kv["gate"].value["state"] == "open"
        assert not world.names("request")
    world.change(savepoints=[{"name": "b"}, {"name": "a", "deleteInstant": instant}])
    world.run(lambda w: outcomes(w) == {"a": "Deleted", "b": "Completed"} and w.is_true(w.table, "Ready"))


def test_a_slip_deletes_nothing_and_is_told_as_long_as_it_stands() -> None:
    world = with_a_savepoint()
    world.change(savepoints=[{"name": "a", "deleteInstant": "20200101000000000"}])
    world.run(lambda w: shown(w)[0].get("message", "").startswith("not deleted"))
    assert outcomes(world) == {"a": "Completed"}
    world.change(savepoints=[{"name": "a"}])
    world.run(lambda w: not w.names("request") and "message" not in shown(w)[0])
    assert outcomes(world) == {"a": "Completed"}


def test_nothing_is_deleted_while_the_table_is_suspended_or_restored() -> None:
    world = with_a_savepoint()
    instant = shown(world)[0]["instant"]
    world.change(suspend=True)
    goes_on(world)
    world.change(savepoints=[{"name": "a", "deleteInstant": instant}])
    goes_on(world)
    assert (outcomes(world), world.names("request")) == ({"a": "Completed"}, {})
    world.change(suspend=False, savepoints=[{"name": "a"}], restore={"savepoint": "a", "nonce": "n1"})
    world.run(lambda w: bool(w.names("request")))
    world.change(savepoints=[{"name": "a", "deleteInstant": instant}])
    asked = set[str]()

    def restored(w: World) -> bool:
        ended = (w.status("restore") or {}).get("outcome") == "Completed"
        asked.update(() if ended else w.names("request"))
        return ended

    world.run(restored)
    assert asked == {"restore-n1"}
