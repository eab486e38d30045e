"""Read, modify, write: two writers add one to the same counters, and both additions are there in
the end (docs/use/sources.md).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.counting_writers import CODE, counting
from tests.support.harness.local import AGENT, SIDE_BY_SIDE, Process, Table, World, rows, until
from tests.support.oracle import not_seen

pytestmark = pytest.mark.extra
NON_BLOCKING = {
    "type": "MergeOnRead",
    "concurrency": {"mode": "NonBlocking"},
    "index": {"type": "Bucket", "buckets": 1},
}


def made(world: World, agent: Process, name: str, **spec: Any) -> Table:
    """Counters 1 and 2 in partition a, 3 in b."""
    table = world.table(name, **spec)
    world.create(table, agent=AGENT, process=agent)
    seed = table.writer("seed", python={"batches": [{"rows": [*rows([1, 2], "a", "0", 1), *rows([3], "b", "0", 1)]}]})
    assert seed.wait() == 0, seed.log()[-4000:]
    return table


def race(world: World, table: Table, function: str, *, quick: list[int], name: str = "slow", **more: Any) -> Process:
    """The writer with that name reads counter 1, quick counts and commits, then the first one
    writes, and is returned.
    """
    gate = world.folder / f"gate-{table.spec.ref.name}-{name}"
    slow = counting(table, name, function, [1], gate=gate, **more)
    until(f"{name} has read", Path(f"{gate}.reached").exists, alive=slow)
    first = counting(table, f"quick-{name}", "updates", quick)
    assert first.wait() == 0, first.log()[-4000:]
    gate.touch()
    return slow


def counted(table: Table, wanted: dict[int, int], *, buckets: bool = False) -> None:
    """So often each counter was counted, each time with a newer ordering value.

    And everything else that the audit looks at.

    `buckets`: of a NonBlocking table.
    """
    due = [(id, "b" if id == 3 else "a", str(count), 1 + count) for id, count in wanted.items()]
    if buckets:
        table.audited(due, without=SIDE_BY_SIDE | not_seen("incremental"))
    else:
        table.audited(due)


@pytest.mark.parametrize("spec", [{}, {"type": "MergeOnRead"}, NON_BLOCKING], ids=["cow", "mor", "non-blocking"])
def test_an_update_is_asked_again(world: World, agent: Process, spec: dict[str, Any]) -> None:
    """I9: what quick has committed between the read and the beginning of the write is a conflict,
    and the rows are made anew from it.
    """
    table = made(world, agent, f"update-{spec.get('type', 'cow').lower()}-{len(spec)}", **spec)
    slow = race(world, table, "updates", quick=[1, 2])
    assert slow.wait() == 0, slow.log()[-4000:]
    assert slow.termination()["conflicts"] == 1
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    counted(table, {1: 2, 2: 1, 3: 0}, buckets=spec is NON_BLOCKING)


def test_another_file_group_is_no_conflict_unless_it_is_serializable(world: World, agent: Process) -> None:
    """Quick counts in the other partition. An update that is serializable meets every commit."""
    table = made(world, agent, "update-elsewhere")
    slow = race(world, table, "updates", quick=[3])
    assert slow.wait() == 0, slow.log()[-4000:]
    assert slow.termination()["conflicts"] == 0
    slow = race(world, table, "updates", quick=[3], name="serializable", serializable=True)
    assert slow.wait() == 0, slow.log()[-4000:]
    assert slow.termination()["conflicts"] == 1
    assert "HUDIOP-SNAPSHOT-MOVED" in slow.log()
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    counted(table, {1: 2, 2: 0, 3: 2})


@pytest.mark.parametrize("spec", [{}, NON_BLOCKING], ids=["cow", "non-blocking"])
def test_a_frame_made_from_the_table_is_not_written_over_a_commit(
    world: World, agent: Process, spec: dict[str, Any]
) -> None:
    """The function was asked once, so its rows are old: the attempt ends as a conflict, and the
    next one asks again.
    """
    table = made(world, agent, f"update-frame-{len(spec)}", **spec)
    slow = race(world, table, "frames", quick=[1])
    assert slow.wait() == 13, slow.log()[-4000:]
    assert slow.termination()["class"] == "WriteConflict"
    assert "calls the function again" in slow.termination()["message"]
    again = counting(table, "slow", "frames", [1])
    assert again.wait() == 0, again.log()[-4000:]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    counted(table, {1: 2, 2: 0, 3: 0}, buckets=spec is NON_BLOCKING)


def test_what_was_read_without_the_runtime_is_compared_too(world: World, agent: Process) -> None:
    """F59: `spark.read`, then a write.

    Stock Hudi loses the addition of quick; here the attempt ends as a conflict.
    """
    table = made(world, agent, "update-unseen")
    slow = race(world, table, "unseen", quick=[1])
    assert slow.wait() == 13, slow.log()[-4000:]
    assert slow.termination()["class"] == "WriteConflict"
    again = counting(table, "slow", "unseen", [1])
    assert again.wait() == 0, again.log()[-4000:]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    counted(table, {1: 2, 2: 0, 3: 0})


@pytest.mark.parametrize("spec", [{}, NON_BLOCKING], ids=["cow", "non-blocking"])
def test_an_update_knows_what_was_read_before_it(world: World, agent: Process, spec: dict[str, Any]) -> None:
    """F442: its function is asked again, but decides by rows that were collected before."""
    table = made(world, agent, f"update-limited-{len(spec)}", **spec)
    slow = race(world, table, "limited", quick=[1])
    assert slow.wait() == 13, slow.log()[-4000:]
    assert slow.termination()["class"] == "WriteConflict"
    again = counting(table, "slow", "limited", [1])
    assert again.wait() == 0, again.log()[-4000:]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    counted(table, {1: 2, 2: 0, 3: 0}, buckets=spec is NON_BLOCKING)


def test_an_update_of_a_table_without_commits(world: World, agent: Process) -> None:
    table = world.table("update-first")
    world.create(table, agent=AGENT, process=agent)
    writer = table.writer("first", file=CODE, function="firsts", python={})
    assert writer.wait() == 0, writer.log()[-4000:]
    counted(table, {9: 0})


def test_a_query_of_the_own_table_is_written_once(world: World, agent: Process) -> None:
    """`source.sql` over the table that it writes, without a race.

    That it is an update, which is asked again: tests/tiers/unit/runtime/read/test_update.py.
    """
    table = made(world, agent, "update-sql")
    query = "SELECT id, p, cast(cast(v AS int) + 1 AS string) AS v, ts + 1 AS ts FROM me WHERE id = 1"
    writer = table.writer("sql", sql={"query": query, "views": [{"name": "me", "hudi": {"path": table.path}}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    counted(table, {1: 1, 2: 0, 3: 0})


LOOK_UPS: dict[str, tuple[str, dict[str, Any]]] = {
    "delete": ("delete", {"type": "MergeOnRead"}),
    "delete-non-blocking": ("delete", NON_BLOCKING),
    "insert": ("insert", {"type": "CopyOnWrite"}),
}


@pytest.mark.parametrize("case", LOOK_UPS)
def test_a_look_up_does_not_hide_what_the_function_has_read(world: World, agent: Process, case: str) -> None:
    """F424, F425: what the runtime reads before each try is not read by the function."""
    operation, spec = LOOK_UPS[case]
    table = made(world, agent, f"looked-up-{case}", **spec)
    gate = world.folder / f"gate-{table.spec.ref.name}"
    batch = {"gate": str(gate), **({"new": 7} if operation == "insert" else {})}
    slow = table.writer("slow", operation=operation, file=CODE, function="collected", python={"batches": [batch]})
    until("slow has read", Path(f"{gate}.reached").exists, alive=slow)
    quick = counting(table, "quick", "updates", [1])
    assert quick.wait() == 0, quick.log()[-4000:]
    gate.touch()
    assert slow.wait() == 13, slow.log()[-4000:]
    assert slow.termination()["class"] == "WriteConflict"
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    counted(table, {1: 1, 2: 0, 3: 0}, buckets=spec is NON_BLOCKING)
