"""Adoption of a table that others wrote: what they left pending is listed, and settled only when a
person has named all of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.support.world.simulated_world import World, finished

OLD, OTHER = "20260101000000000", "20260102000000000"


def found(foreign: dict[str, str], **adopt: Any) -> World:
    world = World(foreign=foreign)
    world.make_table(**({"adoption": adopt} if adopt else {}))
    return world


def settled(world: World) -> None:
    for _ in range(30):
        world.reconcile()
        world.tick()


def adopted(world: World) -> list[dict[str, Any]]:
    return [key.value for key in world.names("settle").values() if key.value["reason"] == "Adopted"]


def test_pending_instants_stop_the_adoption_and_the_message_says_what_resolves_it() -> None:
    """I7: nothing is touched on a guess."""
    world = found({OLD: "commit", OTHER: "clean"})
    settled(world)
    stalled = world.condition(world.table, "Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "PendingInstants")
    assert f"{OLD} (commit), {OTHER} (clean)" in stalled["message"]
    assert f'spec.adoption.rollbackInstants: ["{OLD}", "{OTHER}"]' in stalled["message"]
    assert [f["instant"] for f in (world.table or {})["status"]["timeline"]["foreign"]] == [OLD, OTHER]
    assert world.kv["gate"].value["state"] == "closed"
    assert not adopted(world)
    assert not world.names("instant")


def test_nothing_is_touched_until_every_pending_instant_is_named() -> None:
    world = found({OLD: "commit", OTHER: "commit"}, rollbackInstants=[OLD])
    settled(world)
    assert not adopted(world)
    stalled = world.condition(world.table, "Stalled")
    assert f'rollbackInstants: ["{OLD}", "{OTHER}"]' in stalled["message"]
    assert world.table is not None
    world.edit(world.table, adoption={"rollbackInstants": [OLD, OTHER]})
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert world.rolled_back == {OLD, OTHER}


def test_named_instants_are_proven_drained_rolled_back_and_then_the_gate_opens() -> None:
    world = found({OLD: "deltacommit"}, rollbackInstants=[OLD])
    world.run(lambda w: bool(adopted(w)))
    assert world.condition(world.table, "Stalled")["status"] != "True"
    world.run(lambda w: w.is_true(w.table, "Ready"))
    (record,) = adopted(world)
    assert world.rolled_back == {OLD}
    assert record["proofs"]["unknown"]["kind"] == "Attestation"
    times = record["times"]
    assert times["Unlocked"] - times["Draining"] >= 10_000, "the drain is waited for"
    assert world.kv["gate"].value["adopted"] is True
    world.make_writer("first")
    world.run(finished("first"))
    world.run(lambda w: not w.names("instant"))
    world.settle_down()


def test_adoption_goes_on_whatever_the_operator_dies_in() -> None:
    world = found({OLD: "commit", OTHER: "commit"}, rollbackInstants=[OLD, OTHER])
    world.run(lambda w: w.is_true(w.table, "Ready"), crash_every=2)
    assert world.rolled_back == {OLD, OTHER}


def test_a_living_writer_is_waited_for() -> None:
    world = found({OLD: "commit"}, rollbackInstants=[OLD])
    world.beating = {OLD}
    settled(world)
    assert not adopted(world)
    assert "with a live writer" in world.condition(world.table, "Stalled")["message"]
    world.beating = set()
    world.run(lambda w: w.is_true(w.table, "Ready"))


def test_what_cannot_be_settled_here_is_refused_although_named() -> None:
    world = found({OLD: "clustering"}, rollbackInstants=[OLD])
    settled(world)
    assert not adopted(world)
    assert f"{OLD} (clustering)" in world.condition(world.table, "Stalled")["message"]


def test_instants_that_come_after_adoption_are_foreign_whatever_is_named() -> None:
    """I7: the word is about the writers before adoption."""
    world = found({}, rollbackInstants=[OLD])
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.foreign[OLD] = "commit"
    settled(world)
    assert not adopted(world)
    assert OLD not in world.rolled_back
    assert world.is_true(world.table, "ForeignWriters")
    assert world.table is not None
    world.edit(world.table, lock={"leaseSeconds": 20})  # the gate is closed for a moment
    world.run(lambda w: w.kv["gate"].value["lock"]["leaseSeconds"] == 20 and w.is_true(w.table, "Ready"))
    assert not adopted(world)


def test_a_released_table_is_looked_at_again() -> None:
    world = found({})
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert world.table is not None
    world.delete(world.table)
    world.run(lambda w: w.table is None)
    gate = world.kv["gate"].value
    assert (gate["state"], gate["tableUID"], gate.get("adopted")) == ("frozen", "", None)
    world.foreign[OLD] = "commit"  # written by stock Hudi meanwhile
    world.make_table()
    settled(world)
    assert world.condition(world.table, "Stalled")["reason"] == "PendingInstants"


def test_a_gate_of_an_older_operator_that_is_open_counts_as_adopted() -> None:
    world = found({})
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.put("gate", {k: v for k, v in world.kv["gate"].value.items() if k != "adopted"})
    assert world.table is not None
    world.edit(world.table, lock={"leaseSeconds": 20})
    world.foreign[OLD] = "commit"
    world.run(lambda w: w.kv["gate"].value["lock"]["leaseSeconds"] == 20 and w.is_true(w.table, "Ready"))


def test_the_example_adopts_a_table_with_the_instant_that_it_names() -> None:
    spec = yaml.safe_load((Path(__file__).resolve().parents[5] / "examples" / "adoption" / "table.yaml").read_text())[
        "spec"
    ]
    (named,) = spec["adoption"]["rollbackInstants"]
    world = World(foreign={named: "commit"})
    world.make_table(**spec)
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert world.rolled_back == {named}
    assert world.kv["assignment"].value["adoption"] == "Adopt"
    assert world.kv["assignment"].value["name"] == "orders_v2"
