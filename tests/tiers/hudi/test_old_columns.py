"""Statements of a program whose catalog has the columns that the table had when it was named there,
while another writer has added one, or widened one: no row loses a value (F353).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.compactions import OFF
from tests.support.harness.local import AGENT, Process, World
from tests.support.harness.told import Told

MOVED = "[HUDIOP-SCHEMA-MOVED] MERGE INTO: column "
NAMED = "spark.sql(f\"CREATE TABLE t USING hudi LOCATION '{path}'\")"
COLUMNS = {
    "added": (
        "",
        ", nullif(concat('c', id), '') AS c",
        "c is of type string in the table, and is not in this program's catalog",
    ),
    "nested": (
        ", IF(id > 0, named_struct('a', nullif(CAST(id AS INT), 0)), NULL) AS c",
        ", IF(id > 0, named_struct('a', nullif(CAST(id AS INT), 0), 'b', nullif(concat('b', id), '')), NULL) AS c",
        "c.b is of type string in the table, and is not in this program's catalog",
    ),
    "wider": (
        ", nullif(CAST(id AS INT), 0) AS c",
        ", nullif(id + 5000000000L, 0) AS c",
        "c is of type bigint in the table, and is of type int in this program's catalog",
    ),
}
"""What the table has beside id, p, v and ts at first, then, and what a MERGE INTO is told."""
TYPES = {"added": "string", "nested": "struct<a: int, b: string>", "wider": "long"}


@pytest.mark.extra
@pytest.mark.parametrize("type", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.parametrize("what", COLUMNS)
def test_a_statement_that_does_not_know_a_column_takes_no_value_of_it(
    world: World, agent: Process, type: str, what: str
) -> None:
    first, then, message = COLUMNS[what]
    name = f"old-columns-{what}-{type.lower()}"
    table = world.table(name, type=type, services=OFF)
    world.create(table, agent=AGENT, process=agent)

    def rows(columns: str, v: str, ts: int) -> str:
        query = f"SELECT CAST(id AS INT) AS id, 'a' AS p, '{v}' AS v, {ts}L AS ts{columns} FROM range(1, 7)"
        return f"save({query!r})"

    def found() -> dict[int, tuple[Any, ...]]:
        fresh = world.spark().read.format("hudi").load(table.path).select("id", "v", "ts", "c").collect()
        assert len({row.id for row in fresh}) == len(fresh)
        return {row.id: tuple(row)[1:] for row in fresh}

    program, other = Told(table, "program"), Told(table, "other")
    assert program.run(rows(first, "x", 5)) == ""
    assert not program.run(NAMED)
    assert other.run(rows(then, "y", 6)) == ""
    wanted = found()
    assert {row[:2] for row in wanted.values()} == {("y", 6)}

    def source(columns: str, id: int) -> str:
        made = f"SELECT CAST(id AS INT) AS id, 'a' AS p, 'm' AS v, 7L AS ts{columns} FROM range({id}, {id + 1})"
        return f"({made}) s ON t.id = s.id AND t.p = s.p"

    both = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    merges = [
        f"MERGE INTO t USING {source(first, 1)} {both}",
        f"MERGE INTO t USING {source(first, 1)} WHEN MATCHED THEN DELETE",
    ]
    if type == "CopyOnWrite":
        merges.append(f"MERGE INTO t USING {source(first, 1)} WHEN MATCHED THEN UPDATE SET v = s.v, ts = s.ts")
    for merge in merges:
        said = program.sql(merge)
        assert f"{MOVED}{message}" in said, (merge, said)
        assert found() == wanted, merge
    for statement in ("UPDATE t SET v = 'u' WHERE id = 2", "INSERT INTO t (id, v, ts, p) VALUES (3, 'i', 7, 'a')"):
        said = program.sql(statement)
        if not said and statement.startswith("UPDATE"):
            wanted[2] = ("u", *wanted[2][1:])
        elif not said:
            wanted[3] = ("i", 7, None)
        assert found() == wanted, (statement, said)
    said = program.sql("DELETE FROM t WHERE id = 4")
    if type == "MergeOnRead" and what != "added":
        # It is an update of rows whose old type Hudi does not write.
        refused = {"nested": "MissingSchemaFieldException", "wider": "HoodieAvroSchemaException"}
        assert refused[what] in said, said
    else:
        assert not said
        del wanted[4]
    assert found() == wanted
    assert not program.run(f"spark.sql('DROP TABLE t')\n{NAMED}")
    assert not program.sql("UPDATE t SET v = 'u' WHERE id = 5")
    assert program.sql(f"MERGE INTO t USING {source(then, 6)} {both}") == ""
    wanted |= {5: ("u", *wanted[5][1:]), 6: ("m", 7, wanted[6][2])}
    assert found() == wanted
    for one in (program, other):
        one.end()
    due = [(id, "a", *row) for id, row in wanted.items()]
    table.audited(due, schema=f"id int, p string, v string, ts long, c {TYPES[what]}")
