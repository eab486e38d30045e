"""Holds: asked for beside running writers, remembered as long as they are named, and over by
themselves.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.world.simulated_world import World, at_step, finished

HOUR = 3600


def with_a_commit(**table: Any) -> World:
    world = World()
    world.make_table(**table)
    world.make_writer("first")
    world.run(finished("first"))
    return world


def shown(world: World) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in world.status("holds") or []}


def outcome(name: str, word: str) -> Any:
    return lambda world: shown(world).get(name, {}).get("outcome") == word


def hold(world: World, *entries: dict[str, Any]) -> None:
    assert world.table is not None
    world.edit(world.table, holds=list(entries))


def later(world: World, seconds: int) -> None:
    """So much time passes for everybody."""
    world.now += seconds
    for _ in range(3):
        world.reconcile()
        world.tick()


def test_it_is_granted_beside_a_running_writer_and_no_gate_is_closed() -> None:
    world = with_a_commit()
    world.writer_hang_at = 3
    world.make_writer("running")
    world.run(at_step("running", 3))
    hold(world, {"name": "a", "reader": "nightly export"})
    world.run(outcome("a", "Granted"))
    assert world.kv["gate"].value["state"] == "open"
    found, commit = shown(world)["a"], max(world.completed)
    assert (found["instant"], found["boundaryCompletionTime"]) == (commit, world.completion(commit))
    assert found["reader"] == "nightly export"
    text = f"hold a (nightly export) keeps the files of {commit} until {found['until']}"
    assert [e.message for e in world.events if e.reason == "HoldGranted"] == [text]
    assert world.condition(world.table, "CleaningHeld")["reason"] == "NotHeldForLong"


def test_a_commit_that_is_not_there_is_refused() -> None:
    world = with_a_commit()
    hold(world, {"name": "a", "instant": "20200101000000000"})
    world.run(outcome("a", "Refused"))
    assert [e.message for e in world.events if e.reason == "HoldRefused"] == ["hold a: there is no such commit"]
    later(world, 2 * 24 * HOUR)
    assert shown(world)["a"]["outcome"] == "Refused"


def test_its_time_ends_it_once_and_it_does_not_begin_anew() -> None:
    """The manifest stays in Git."""
    world = with_a_commit()
    hold(world, {"name": "a", "durationSeconds": HOUR})
    world.run(outcome("a", "Granted"))
    until = shown(world)["a"]["until"]
    later(world, HOUR - 100)
    assert shown(world)["a"]["outcome"] == "Granted"
    later(world, 200)
    assert shown(world)["a"]["outcome"] == "Expired"
    later(world, 5 * 24 * HOUR)
    assert (shown(world)["a"]["outcome"], shown(world)["a"]["until"]) == ("Expired", until)
    assert len([e for e in world.events if e.reason == "HoldGranted"]) == 1


def test_one_that_is_extended_counts_from_its_begin_and_is_granted_again() -> None:
    world = with_a_commit()
    hold(world, {"name": "a", "durationSeconds": HOUR})
    world.run(outcome("a", "Granted"))
    since = shown(world)["a"]["since"]
    hold(world, {"name": "a", "durationSeconds": 3 * HOUR})
    world.reconcile()
    world.reconcile()
    assert shown(world)["a"]["outcome"] == "Pending", "it was proved for the time before"
    world.run(outcome("a", "Granted"))
    assert shown(world)["a"]["since"] == since
    later(world, 2 * HOUR)
    assert shown(world)["a"]["outcome"] == "Granted"


def test_a_name_that_is_removed_ends_it_and_can_be_used_again() -> None:
    world = with_a_commit()
    hold(world, {"name": "a"}, {"name": "b"})
    world.run(lambda w: outcome("a", "Granted")(w) and outcome("b", "Granted")(w))
    hold(world, {"name": "b"})
    world.run(lambda w: "done/hold-a" not in w.kv)
    assert sorted(shown(world)) == ["b"]
    assert sorted(world.names("request")) == ["hold-b"]
    later(world, HOUR)
    hold(world, {"name": "a"}, {"name": "b"})
    world.run(outcome("a", "Granted"))
    assert shown(world)["a"]["since"] > shown(world)["b"]["since"]
    hold(world)
    world.run(lambda w: not w.names("request"))
    assert shown(world) == {}
    assert world.condition(world.table, "CleaningHeld")["status"] == "Missing"


def test_one_that_lasts_long_is_told_of() -> None:
    world = with_a_commit()
    hold(world, {"name": "a", "durationSeconds": 7 * 24 * HOUR, "reader": "audit"})
    world.run(outcome("a", "Granted"))
    later(world, 24 * HOUR)
    found, entry = world.condition(world.table, "CleaningHeld"), shown(world)["a"]
    assert (found["status"], found["reason"]) == ("True", "HeldForLong")
    wanted = f"hold a (audit) keeps the files of {entry['instant']} since {entry['since']}, until {entry['until']}"
    assert found["message"] == wanted
    assert [e.message for e in world.events if e.reason == "CleaningHeld"] == [wanted]


def test_another_hudi_table_of_the_path_begins_anew() -> None:
    world = with_a_commit()
    hold(world, {"name": "a", "durationSeconds": HOUR})
    world.run(outcome("a", "Granted"))
    world.kv["request/hold-a"].value["tableUID"] = "another-one"
    later(world, 2 * HOUR)
    world.run(outcome("a", "Granted"))


def test_nothing_is_asked_for_before_the_table_is_this_hudi_tables() -> None:
    world = World(foreign={"20260101000000000": "commit"})
    world.make_table(holds=[{"name": "a"}])
    for _ in range(30):
        world.reconcile()
        world.tick()
    assert not world.names("request")
    assert shown(world)["a"]["outcome"] == "Pending"


@pytest.mark.parametrize("crash", [2, 3])
def test_the_operator_may_die_in_it_anywhere(crash: int) -> None:
    world = with_a_commit()
    hold(world, {"name": "a"}, {"name": "b"})
    world.run(lambda w: outcome("a", "Granted")(w) and outcome("b", "Granted")(w), crash_every=crash)
