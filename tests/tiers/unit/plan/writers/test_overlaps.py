"""Admission by declared partitions, in the simulated world: who waits for whom, and that nobody
waits for ever.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.plan.writers import overlaps
from tests.support.world.simulated_world import World, at_step, finished, ready_world

DISJOINT = {"partitionFields": ["day"], "concurrency": {"mode": "Optimistic", "admission": "DisjointPartitions"}}
EVERY_MINUTE = {"schedule": {"cron": "* * * * *"}}


def started(world: World) -> list[str]:
    """Writers of the driver pods, in the order in which they were made."""
    return [name.rsplit("-", 2)[0] for name in world.created if not name.startswith("hudi-agent")]


def go_on(world: World, name: str) -> None:
    process = world.writer_process(name)
    assert process is not None
    process.hang_at = None


def admitted(world: World, name: str) -> dict[str, Any]:
    return world.condition(world.writers[name], "Admitted")


def look(world: World, times: int = 4) -> None:
    for _ in range(times):
        world.reconcile()
        world.tick()


def with_running(world: World, *names: str, **spec: Any) -> None:
    world.writer_hang_at = 1
    for name in names:
        world.make_writer(name, **spec)
    for name in names:
        world.run(at_step(name, 1))


def test_overlapping_declarations_take_turns() -> None:
    world = ready_world(**DISJOINT)
    with_running(world, "january", partitions=["day=2026-01-*"])
    world.make_writer("late-january", partitions=["2026-01-2?", "2026-02-*"])
    world.make_writer("march", partitions=["2026-03-*"])
    world.run(at_step("march", 1))
    waiting = admitted(world, "late-january")
    assert (waiting["status"], waiting["reason"]) == ("False", "OverlappingPartitions")
    assert waiting["message"] == "january runs and may write the same partitions: 2026-01-2? here, 2026-01-* there"
    assert world.writers["late-january"]["status"]["queue"]["blockedBy"] == "january"
    world.writer_hang_at = None
    go_on(world, "january")
    world.run(finished("late-january"))
    assert not finished("march")(world), "who writes elsewhere is not waited for"


def test_without_the_rule_of_the_table_everybody_starts() -> None:
    world = ready_world(partitionFields=["day"])
    with_running(world, "a", "b", partitions=["2026-01-*"])


def test_who_declares_nothing_runs_alone() -> None:
    world = ready_world(**DISJOINT)
    with_running(world, "a", partitions=["2026-01-*"])
    world.make_writer("everything")
    look(world)
    assert (
        admitted(world, "everything")["message"]
        == "a runs and may write the same partitions: any here, 2026-01-* there"
    )


def test_nobody_slips_past_who_waits() -> None:
    """`all` waits for a; b, which came later, would run beside a, but not beside `all`."""
    world = ready_world(**DISJOINT)
    with_running(world, "a", partitions=["a"])
    world.make_writer("all", partitions=["*"])
    look(world)
    world.make_writer("b", partitions=["b"])
    look(world)
    assert admitted(world, "b")["message"] == "all comes first and may write the same partitions: b here, * there"
    world.writer_hang_at = None
    go_on(world, "a")
    world.run(lambda w: finished("all")(w) and finished("b")(w))
    assert started(world) == ["a", "all", "b"]


def test_priority_then_waiting_time() -> None:
    world = ready_world(**DISJOINT)
    with_running(world, "a")
    for name, priority in (("first", 0), ("second", 0), ("important", 5)):
        world.make_writer(name, priority=priority)
        look(world, 2)
    world.writer_hang_at = None
    go_on(world, "a")
    world.run(lambda w: all(finished(n)(w) for n in ("first", "second", "important")))
    assert started(world) == ["a", "important", "first", "second"]


def test_a_modest_writer_is_not_starved() -> None:
    """F24: two important writers come every minute and always one of them waits.

    The modest one is overtaken eight times at most.
    """
    world = ready_world(**DISJOINT)
    for name in ("x", "y"):
        world.make_writer(name, priority=10, **EVERY_MINUTE)
    world.run(lambda w: len(started(w)) >= 1, seconds=200)
    world.make_writer("modest", priority=-10)
    look(world, 2)
    # Each run takes longer than the time between two ticks, so there is always an important writer
    # that waits.
    for _ in range(14):
        world.writer_hang_at = 1
        world.run(lambda w: any(p.role == "writer" and p.alive and p.step >= 1 for p in w.processes), seconds=300)
        look(world, 70)
        if "modest" in started(world):
            break
        running = next(p for p in world.processes if p.role == "writer" and p.alive)
        running.hang_at = None
        world.run(lambda w, p=running: not p.alive)
    assert "modest" in started(world)
    overtakers = started(world).index("modest") - 1
    assert 6 <= overtakers <= 8, started(world)


def test_a_declaration_that_was_changed_counts_for_the_next_attempt() -> None:
    world = ready_world(**DISJOINT)
    with_running(world, "a", partitions=["2026-01-*"])
    world.edit(world.writers["a"], partitions=["2026-02-*"])
    world.make_writer("b", partitions=["2026-01-01"])
    look(world)
    assert admitted(world, "b")["message"] == "a runs and may write the same partitions: 2026-01-01 here, any there"


def test_partitions_of_a_table_that_has_none() -> None:
    world = ready_world()
    world.make_writer("a", partitions=["2026-01-*"])
    world.run(lambda w: w.is_true(w.writers["a"], "Stalled"))
    assert (
        world.condition(world.writers["a"], "Stalled")["message"]
        == "spec.partitions = ['2026-01-*']: HudiTable flights has no partitionFields"
    )


def test_what_is_too_much_to_compare_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """F513: the first in the queue is compared, those behind it may have a partition in common."""
    monkeypatch.setattr(overlaps, "MOST_STEPS", 30)
    world = ready_world(**DISJOINT)
    with_running(world, "a", partitions=["2026-01-*"])
    for name in ("b", "c"):
        world.make_writer(name, partitions=["????-01-01", "2026-02-01"])
        look(world)
    world.make_writer("d", partitions=["2026-03-*"])
    look(world)
    assert admitted(world, "b")["message"].endswith("????-01-01 here, 2026-01-* there")
    told = admitted(world, "d")
    assert (told["status"], told["reason"]) == ("False", "OverlappingPartitions")
    assert "than are compared at once" in told["message"]
    world.writer_hang_at = None
    go_on(world, "a")
    world.run(lambda w: all(finished(name)(w) for name in ("b", "c", "d")))
