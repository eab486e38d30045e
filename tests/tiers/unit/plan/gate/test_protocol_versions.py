"""Going back to an older operator: one protocol version through the closed gate, more than one not
at all.
"""

from __future__ import annotations

from hudi_contract import keys
from tests.support.world.simulated_world import World, at_step, finished, ready_world

MINE = keys.PROTOCOL_VERSION


def of_a_newer_operator(world: World, *, by: int) -> None:
    world.put("gate", {**world.kv["gate"].value, "protocolVersion": MINE + by})


def look(world: World, times: int = 10) -> None:
    for _ in range(times):
        world.reconcile()
        world.tick()


def test_one_version_back_goes_through_the_closed_gate() -> None:
    """F8: who started under the newer protocol ends first.

    Nobody runs under another one than the gate names.
    """
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("newer")
    world.run(at_step("newer", 1))
    of_a_newer_operator(world, by=1)
    world.writer_hang_at = None
    world.make_writer("older")
    look(world)
    gate = world.kv["gate"].value
    assert (gate["state"], gate["protocolVersion"]) == ("closed", MINE + 1)
    assert world.condition(world.writers["older"], "Admitted")["reason"] == "TableChanging"
    assert not any(name.startswith("older") for name in world.created)
    process = world.writer_process("newer")
    assert process is not None
    process.hang_at = None
    world.run(finished("older"))
    gate = world.kv["gate"].value
    assert (gate["state"], gate["protocolVersion"]) == ("open", MINE)
    world.settle_down()


def test_more_than_one_version_back_is_refused_and_nothing_is_touched() -> None:
    world = ready_world()
    of_a_newer_operator(world, by=2)
    world.make_writer("older")
    before = {key: stored.value for key, stored in world.kv.items() if not key.startswith(("alive/", "report/"))}
    look(world)
    assert world.condition(world.table, "Stalled")["reason"] == "ProtocolTooNew"
    message = world.condition(world.table, "Stalled")["message"]
    assert (
        message
        == f"the gate has protocol version {MINE + 2}, this operator has {MINE}: downgrade one version at a time"
    )
    assert message in world.condition(world.writers["older"], "Admitted")["message"]
    assert {
        key: stored.value for key, stored in world.kv.items() if not key.startswith(("alive/", "report/"))
    } == before
    assert not any(name.startswith("older") for name in world.created)
