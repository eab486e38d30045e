"""Columns that change while several writers are at work (R57)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.local import AGENT, SIDE_BY_SIDE, Process, Table, World, rows, until

pytestmark = pytest.mark.extra
PLAIN = "id int, p string, v string, ts long"
WIDE = PLAIN + ", c string"
ROWS = {"rows": "rows are compared here, with their columns"}
WIDER = {"hudi-rs": "hudi-rs reads no log files with a part of a struct that has become wider"}
NON_BLOCKING = {
    "type": "MergeOnRead",
    "concurrency": {"mode": "NonBlocking"},
    "index": {"type": "Bucket", "buckets": 1},
}


def made(world: World, agent: Process, name: str, **spec: Any) -> Table:
    table = world.table(name, **spec)
    world.create(table, agent=AGENT, process=agent)
    return table


def content(table: Table, *columns: str) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
    """Types by column, without Hudi's own, and the rows in those columns (default: all)."""
    frame = table.world.spark().read.format("hudi").load(table.path)
    own = [name for name in frame.columns if not name.startswith("_hoodie_")]
    found = frame.select(*(columns or own))
    return {field.name: field.dataType.simpleString() for field in found.schema.fields}, [
        tuple(row) for row in found.collect()
    ]


@pytest.mark.parametrize("mode", ["Optimistic", "NonBlocking"])
def test_a_column_is_added_beside_a_writer_that_does_not_know_it(world: World, agent: Process, mode: str) -> None:
    """Both commit, whoever began first; rows of the other have null there.

    A batch without the column is taken afterwards as well.
    """
    table = made(world, agent, f"schema-add-{mode.lower()}", **(NON_BLOCKING if mode == "NonBlocking" else {}))
    gate = world.folder / f"gate-add-{mode}"
    old = [
        {"rows": rows([1, 2], "a", "seed", 1)},
        {"rows": rows([3], "b", "slow", 2), "gate": str(gate)},
        {"rows": rows([2], "a", "again", 3)},
    ]
    slow = table.writer("slow", python={"batches": old})
    until("a write without the column is under way", Path(f"{gate}.reached").exists, alive=slow)
    quick = table.writer("quick", python={"batches": [{"schema": WIDE, "rows": [(4, "c", "quick", 2, "new")]}]})
    assert quick.wait() == 0, quick.log()[-4000:]
    gate.touch()
    assert slow.wait() == 0, slow.log()[-4000:]
    assert slow.termination()["commits"] == 3
    # Without a conflict strategy of Hudi's own, what was fitted to the old columns is
    # written once more.
    assert slow.termination()["conflicts"] == (1 if mode == "NonBlocking" else 0)
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    types, found = content(table)
    assert types == {"id": "int", "p": "string", "v": "string", "ts": "bigint", "c": "string"}
    due = [
        (1, "a", "seed", 1, None),
        (2, "a", "again", 3, None),
        (3, "b", "slow", 2, None),
        (4, "c", "quick", 2, "new"),
    ]
    assert set(found) == set(due)
    table.audited(None, without=ROWS | (SIDE_BY_SIDE if mode == "NonBlocking" else {}))


def test_a_long_write_that_brings_a_column_is_not_hidden_by_a_short_one(world: World, agent: Process) -> None:
    """Readers take the schema of the commit that was begun last (Hudi 1.2.0): the column stands
    before the long write begins.
    """
    table = made(world, agent, "schema-long")
    gate = world.folder / "gate-schema-long"
    first = table.writer("first", python={"batches": [{"rows": rows([1], "a", "seed", 1)}]})
    assert first.wait() == 0, first.log()[-4000:]
    slow = table.writer(
        "slow", python={"batches": [{"schema": WIDE, "rows": [(2, "b", "slow", 2, "new")], "gate": str(gate)}]}
    )
    until("a write that brings the column is under way", Path(f"{gate}.reached").exists, alive=slow)
    quick = table.writer("quick", python={"batches": [{"rows": rows([3], "c", "quick", 2)}]})
    assert quick.wait() == 0, quick.log()[-4000:]
    gate.touch()
    assert slow.wait() == 0, slow.log()[-4000:]
    assert set(content(table)[1]) == {(1, "a", "seed", 1, None), (2, "b", "slow", 2, "new"), (3, "c", "quick", 2, None)}
    after = table.writer("after", python={"batches": [{"rows": rows([4], "b", "after", 3)}]})
    assert after.wait() == 0, after.log()[-4000:]
    assert set(content(table, "id", "c")[1]) == {(1, None), (2, "new"), (3, None), (4, None)}, (
        "the file group was written again, with its column"
    )
    table.audited(None, without=ROWS)


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_a_column_becomes_wider_beside_a_writer_of_the_narrow_type(world: World, agent: Process, kind: str) -> None:
    """Values of both stay what they are, in old files, new files and log files.

    Narrow values come in as wide ones from then on.
    """
    # A struct of one field in an array: stock Hudi 1.2.0 writes lists in the old form, in which it
    # cannot rewrite such a file (ClassCastException). The runtime writes the form of F41.
    narrow = PLAIN + ", n int, m int, x float, s struct<a: int>, l array<struct<a: int>>"
    wide = PLAIN + ", n long, m double, x double, s struct<a: int, b: string>, l array<struct<a: int, b: string>>"
    table = made(world, agent, f"schema-wide-{kind.lower()}", type=kind)
    gate = world.folder / f"gate-wide-{kind}"
    batches = [
        {
            "schema": narrow,
            "rows": [(key, p, "seed", 1, 7, 7, 0.1, [7], [[7]]) for key, p in ((1, "a"), (2, "a"), (4, "e"), (5, "d"))],
        },
        {"schema": narrow, "rows": [(5, "d", "logged", 2, 5, 5, 0.1, [5], [[5]])]},
        {"schema": narrow, "rows": [(3, "b", "slow", 2, 9, 9, 0.1, [9], [[9]])], "gate": str(gate)},
        {"schema": narrow, "rows": [(1, "a", "again", 3, 10, 10, 0.1, [10], [[10]])]},
    ]
    slow = table.writer("slow", python={"batches": batches})
    until("a write of the narrow type is under way", Path(f"{gate}.reached").exists, alive=slow)
    big = 5_000_000_000
    quick = table.writer(
        "quick",
        python={
            "batches": [{"schema": wide, "rows": [(2, "a", "quick", 2, big, 0.25, 0.7, [8, "new"], [[8, "new"]])]}]
        },
    )
    assert quick.wait() == 0, quick.log()[-4000:]
    gate.touch()
    assert slow.wait() == 0, slow.log()[-4000:]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    types, found = content(table, "id", "v", "n", "m", "x", "s", "l")
    wider = {"id": "int", "v": "string", "n": "bigint", "m": "double", "x": "double"}
    assert types == wider | {"s": "struct<a:int,b:string>", "l": "array<struct<a:int,b:string>>"}
    assert {row[:5] for row in found} == {
        (1, "again", 10, 10.0, 0.1),
        (2, "quick", big, 0.25, 0.7),
        (3, "slow", 9, 9.0, 0.1),
        (4, "seed", 7, 7.0, 0.1),
        (5, "logged", 5, 5.0, 0.1),
    }
    parts = {1: (10, None), 2: (8, "new"), 3: (9, None), 4: (7, None), 5: (5, None)}
    assert {row[0]: (tuple(row[5]), [tuple(part) for part in row[6]]) for row in found} == {
        key: (part, [part]) for key, part in parts.items()
    }
    table.audited(None, without=ROWS | (WIDER if kind == "MergeOnRead" else {}))


def test_what_does_not_fit_is_refused_before_anything_is_written(world: World, agent: Process) -> None:
    """The operator is told class, column, both types and the rule.

    No instant was begun, what was committed before stays.
    """
    table = made(world, agent, "schema-refused", schema={"missingColumns": "Refuse"})
    good = {"rows": rows([1], "a", "kept", 1)}
    for number, (schema, row, words) in enumerate(
        [
            ("id int, p string, v int, ts long", [2, "a", 5, 2], "column v: the table has string, the batch has int; "),
            (
                "id int, p string, ts long",
                [2, "a", 2],
                "column v: the table has string, the batch does not have the column; spec.schema.missingColumns",
            ),
        ]
    ):
        writer = table.writer(f"bad-{number}", python={"batches": [good, {"schema": schema, "rows": [row]}]})
        assert writer.wait() == 10, writer.log()[-4000:]
        told = writer.termination()
        assert told["class"] == "SchemaMismatch"
        assert words in told["message"]
        assert told["commits"] == 1
        assert not table.pending()
        assert not writer.protocol("abandon")
        assert writer.inc not in table.names("writer/"), "it has left in order"
    table.audited(rows([1], "a", "kept", 1))
