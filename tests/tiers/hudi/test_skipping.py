"""No query misses rows because of statistics of columns (F104)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.local import AGENT, Process, Table, World

COLUMNS = "id int, p string, v string, ts long, d double, s string"
LONG = "y" * 5000
HALF_WIDTH, RARE = "\uff96", "\U00020bb7"
"""By bytes of UTF-8 the first one is less, by UTF-16 the second one."""
QUERIES = {
    "d = 5": {2},
    "d > 2": {1, 2},
    "d < 2": {3},
    f"s = '{HALF_WIDTH}'": {2},
    f"s = '{RARE}'": {3},
    f"s = '{LONG}'": {1},
    "v = 'new' AND d = 5": {2},
    "ts = 2": {1, 2, 3},
}
"""Conditions, and the records that meet them. NaN is greater than every number."""


def commits(table: Table, name: str) -> None:
    """Three records, and a new version of each: of a MergeOnRead table in a log file."""
    values = [(1, float("nan"), LONG), (2, 5.0, HALF_WIDTH), (3, 1.0, RARE)]
    batches = [
        {"schema": COLUMNS, "rows": [(key, "a", v, ts, d, s) for key, d, s in values]}
        for v, ts in (("old", 1), ("new", 2))
    ]
    writer = table.writer(name, python={"batches": batches})
    assert writer.wait() == 0, writer.log()[-4000:]


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_what_a_reader_asks_for_is_found(world: World, agent: Process, kind: str) -> None:
    """A reader that sets no option skips files by the table's statistics, if it has any: the
    default has none.
    """
    table = world.table(f"asked-{kind.lower()}", type=kind)
    world.create(table, agent=AGENT, process=agent)
    commits(table, "w")
    read = world.spark().read.format("hudi").load(table.path)
    assert {where: {row.id for row in read.where(where).select("id").collect()} for where in QUERIES} == QUERIES


@pytest.mark.extra
def test_a_writer_finds_what_it_changes(world: World, agent: Process) -> None:
    """With statistics, too: a writer reads all files of the partitions that it asks for.

    The statement comes first: what is changed once stands in log files with exact statistics.
    """
    stats: dict[str, Any] = {"indexes": ["ColumnStats"]}
    table = world.table("changed", type="MergeOnRead", metadataTable=stats)
    world.create(table, agent=AGENT, process=agent)
    commits(table, "w")
    wanted = f"d = 5 OR s IN ('{RARE}', '{LONG}')"
    statement = f"UPDATE own SET v = 'stated', ts = ts + 1 WHERE {wanted}"
    writer = table.writer("states", function="statement", python={"sql": statement})
    assert writer.wait() == 0, writer.log()[-4000:]
    query = f"SELECT id, p, concat(v, ' and found') AS v, ts + 1 AS ts, d, s FROM own WHERE {wanted}"
    writer = table.writer("changes", sql={"query": query, "views": [{"name": "own", "hudi": {"path": table.path}}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    rows = world.spark().read.format("hudi").option("hoodie.enable.data.skipping", "false").load(table.path)
    assert {(row.id, row.v, row.ts) for row in rows.select("id", "v", "ts").collect()} == {
        (key, "stated and found", 4) for key in (1, 2, 3)
    }
