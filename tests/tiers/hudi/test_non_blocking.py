"""Writers that do not block each other (RFC-22's lock-free-ish writing): both commit to one file
group, readers merge by the ordering field.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness import own_rows
from tests.support.harness.compactions import OFF
from tests.support.harness.local import AGENT, REFUSED_WRITES, SIDE_BY_SIDE, Process, Table, World, rows, until
from tests.support.harness.told import Told

NON_BLOCKING = {
    "type": "MergeOnRead",
    "concurrency": {"mode": "NonBlocking"},
    "index": {"type": "Bucket", "buckets": 1},
}


def made(world: World, agent: Process, name: str) -> Table:
    table = world.table(name, **NON_BLOCKING)
    world.create(table, agent=AGENT, process=agent)
    return table


def test_two_writers_of_one_file_group_both_commit(world: World, agent: Process) -> None:
    """Neither is refused; of two versions of a record the one with the larger ordering value stays,
    whoever committed last.
    """
    table = made(world, agent, "side-by-side")
    gate = world.folder / "gate-side-by-side"
    slow = table.writer(
        "slow",
        python={
            "batches": [
                {"rows": [*rows(range(10), "a", "slow", 2), *rows(range(10, 20), "a", "slow", 4)], "gate": str(gate)}
            ]
        },
    )
    until("the slow write is under way", Path(f"{gate}.reached").exists, alive=slow)
    quick = table.writer("quick", python={"batches": [{"rows": rows(range(20), "a", "quick", 3)}]})
    assert quick.wait() == 0, quick.log()[-4000:]
    table.audited(rows(range(20), "a", "quick", 3), without=SIDE_BY_SIDE)  # a pending write is not seen
    gate.touch()
    assert slow.wait() == 0, slow.log()[-4000:]
    for writer in (quick, slow):
        assert writer.termination()["conflicts"] == 0
        assert not writer.protocol("abandon")
    slow_instant, quick_instant = slow.termination()["lastInstant"], quick.termination()["lastInstant"]
    done = {i.requested: i.completion for i in table.timeline().completed}
    assert slow_instant < quick_instant
    assert done[quick_instant] < done[slow_instant], "the one that began first ended last"
    groups = [
        {Path(name).name.lstrip(".").split("_")[0] for name in table.data_files(instant)}
        for instant in (slow_instant, quick_instant)
    ]
    assert groups[0] == groups[1] != set(), "both wrote the same file group"
    expected = rows(range(10), "a", "quick", 3) + rows(range(10, 20), "a", "slow", 4)
    table.audited(expected, without=SIDE_BY_SIDE)
    own_rows.same(table.folder, expected)


@pytest.mark.extra
def test_a_killed_writer_is_rolled_back_beside_the_others(world: World, agent: Process) -> None:
    """I7: exactly the dead writer's log files go, from the file group that another writer has
    committed to meanwhile; its next attempt commits once.
    """
    table = made(world, agent, "side-by-side-kill")
    gate = world.folder / "gate-side-by-side-kill"
    batches = [
        {"rows": rows(range(5), "a", "first", 1)},
        {"rows": rows(range(5, 10), "a", "second", 1), "gate": str(gate)},
    ]
    victim = table.writer("victim", python={"batches": batches})
    until("the second write is under way", Path(f"{gate}.reached").exists, alive=victim)
    (dead,) = table.pending()
    other = table.writer("other", python={"batches": [{"rows": rows(range(20, 25), "a", "other", 1)}]})
    assert other.wait() == 0, other.log()[-4000:]
    victim.kill()
    inc = table.fence(victim)
    gate.touch()
    again = table.writer("victim", python={"batches": batches})
    assert again.wait() == 0, again.log()[-4000:]
    assert again.termination()["commits"] == 1, "the first batch is not repeated"
    assert until("swept", lambda: table.outcomes(inc), alive=agent) == {dead: "RolledBack"}
    assert table.data_files(dead) == []
    expected = (
        rows(range(5), "a", "first", 1) + rows(range(5, 10), "a", "second", 1) + rows(range(20, 25), "a", "other", 1)
    )
    table.audited(expected, without=SIDE_BY_SIDE)
    own_rows.same(table.folder, expected)


def values(table: Table) -> dict[int, str]:
    return {
        row.id: row.v for row in table.world.spark().read.format("hudi").load(table.path).select("id", "v").collect()
    }


@pytest.mark.extra
def test_a_delete_against_an_insert_of_one_key(world: World, agent: Process) -> None:
    """RFC-22, comment 1: of a row that is marked as deleted and one that is not the larger ordering
    value decides, whichever commits last.
    """
    table = made(world, agent, "delete-marked")
    gate = world.folder / "gate-delete-marked"
    schema = "id int, p string, v string, ts long, _hoodie_is_deleted boolean"
    seed = {"schema": schema, "rows": [(key, "a", "seed", 1, False) for key in range(1, 5)]}
    late = [
        (1, "a", "late", 8, True),
        (2, "a", "late", 6, True),
        (3, "a", "late", 7, False),
        (4, "a", "late", 7, False),
    ]
    early = [
        (1, "a", "early", 7, False),
        (2, "a", "early", 7, False),
        (3, "a", "early", 8, True),
        (4, "a", "early", 6, True),
    ]
    slow = table.writer("slow", python={"batches": [seed, {"schema": schema, "rows": late, "gate": str(gate)}]})
    until("the slow write is under way", Path(f"{gate}.reached").exists, alive=slow)
    quick = table.writer("quick", python={"batches": [{"schema": schema, "rows": early}]})
    assert quick.wait() == 0, quick.log()[-4000:]
    assert values(table) == {1: "early", 2: "early"}, "both deletes are newer than the seed"
    gate.touch()
    assert slow.wait() == 0, slow.log()[-4000:]
    assert slow.termination()["conflicts"] == 0
    assert values(table) == {2: "early", 4: "late"}
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    left = [(2, "a", "early", 7), (4, "a", "late", 7)]
    table.audited(left, without=SIDE_BY_SIDE)


@pytest.mark.extra
def test_the_operation_delete_deletes_what_it_has_read(world: World, agent: Process) -> None:
    """A deletion has the ordering value of the row that it deletes (F326): the row of an insert of
    the same key that is under way stays if its value is greater, whichever was begun last.
    """
    table = made(world, agent, "delete-operation")
    gate, gone = (world.folder / f"gate-delete-{name}" for name in ("late", "gone"))
    seed, late = rows(range(1, 6), "a", "seed", 3), [*rows([2, 4], "a", "late", 7), *rows([5], "a", "old", 2)]
    inserts = table.writer("inserts", python={"batches": [{"rows": seed}, {"rows": late, "gate": str(gate)}]})
    until("an insert is under way", Path(f"{gate}.reached").exists, alive=inserts)
    keys = "id int, p string, ts long"
    batch = {"schema": keys, "rows": [[2, "a", 8], [4, "a", 1], [5, "a", 1], [9, "a", 1]], "gate": str(gone)}
    deletes = table.writer("deletes", operation="delete", python={"batches": [batch]})
    until("a delete is under way", Path(f"{gone}.reached").exists, alive=deletes)
    quick = table.writer("quick", python={"batches": [{"rows": rows([3], "a", "quick", 9)}]})
    assert quick.wait() == 0, quick.log()[-4000:]
    gone.touch()
    assert deletes.wait() == 0, deletes.log()[-4000:]
    assert values(table) == {1: "seed", 3: "quick"}
    gate.touch()
    for process in (inserts, deletes):
        assert process.wait() == 0, process.log()[-4000:]
        assert process.termination()["conflicts"] == 0
    assert values(table) == {1: "seed", 2: "late", 3: "quick", 4: "late"}
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    left = [*rows([1], "a", "seed", 3), *rows([2, 4], "a", "late", 7), *rows([3], "a", "quick", 9)]
    table.audited(left, without=SIDE_BY_SIDE)


ROW = "SELECT {id} AS id, 'a' AS p, '{v}' AS v, {ts}L AS ts"
REPLACING = {
    "delete_partition": {"hoodie.datasource.write.partitions.to.delete": "a"},
    "insert_overwrite": {},
    "insert_overwrite_table": {},
}


@pytest.mark.extra
def test_nothing_replaces_the_file_groups_of_a_bucket(world: World, agent: Process) -> None:
    """F423: a bucket has one file id for ever here.

    Of a replaced one no later row would be seen, and cleaning would remove it.
    """
    table = world.table("never-replaced", services=OFF, **NON_BLOCKING)
    world.create(table, agent=AGENT, process=agent)
    program, other = Told(table, "program"), Told(table, "other")
    assert not program.run(f"save({ROW.format(id=1, v='x', ts=5)!r})")
    for operation, options in REPLACING.items():
        for mode in ("append", "overwrite"):
            said = program.run(f"save({ROW.format(id=3, v='y', ts=6)!r}, {operation!r}, {mode!r}, **{options})")
            assert "[HUDIOP-STATEMENT]" in said, (operation, mode, said)
    assert not program.sql(f"CREATE TABLE t USING hudi LOCATION '{table.path}'")
    said = program.sql(f"INSERT OVERWRITE t {ROW.format(id=3, v='y', ts=6)}")
    assert "[HUDIOP-STATEMENT] INSERT OVERWRITE in a table of mode NonBlocking" in said, said
    bulk = {"hoodie.bulkinsert.overwrite.operation.type": "INSERT_OVERWRITE"}
    said = program.run(f"save({ROW.format(id=3, v='y', ts=6)!r}, 'bulk_insert', **{bulk})")
    assert "[HUDIOP-" in said, said
    assert not other.run(f"save({ROW.format(id=2, v='o', ts=9)!r})")
    for told in (program, other):
        told.end()
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([(1, "a", "x", 5), (2, "a", "o", 9)], without=SIDE_BY_SIDE | REFUSED_WRITES)
