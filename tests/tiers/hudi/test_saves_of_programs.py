"""What programs save: nothing that leaves the table unreadable for others, gives a record a second
key, or brings a deleted row back (F370-F377), and nothing past the list of statements (F381). The
batch of a HudiWriter is refused for the same.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.compactions import OFF
from tests.support.harness.local import AGENT, Table, World
from tests.support.harness.processes import Process
from tests.support.harness.told import Told
from tests.support.oracle import not_seen

NAMED = "spark.sql(f\"CREATE TABLE t USING hudi LOCATION '{path}'\")"
ROWS = {"rows": "its rows are compared before, with all columns"}
UNSEEN = {**ROWS, **not_seen("hudi-rs", "incremental", "overlap")}


def select(ids: str, **columns: str) -> str:
    """A query of rows with these ids; `columns` replace those that all rows have, or add others."""
    usual = {
        "id": "CAST(id AS INT)",
        "p": "'a'",
        "v": "'x'",
        "ts": "CAST(1 AS INT)",
        "s": "named_struct('a', CAST(id AS INT))",
    }
    named = ", ".join(f"{value} AS {name}" for name, value in (usual | columns).items() if value)
    return f"SELECT {named} FROM range({ids})"


def saved(program: Told, query: str, operation: str = "upsert", **options: str) -> str:
    return program.run(f"save({query!r}, {operation!r}, **{options!r})")


def ids_of(world: World, table: Table) -> dict[int, Any]:
    rows = world.spark().read.format("hudi").load(table.path).select("id", "v", "ts", "s").collect()
    found = {row.id: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_a_save_leaves_the_table_readable(world: World, agent: Process) -> None:
    table = world.table("saves", type="MergeOnRead", services=OFF)
    world.create(table, agent=AGENT, process=agent)
    program = Told(table, "program")
    assert saved(program, select("1, 5")) == ""
    assert saved(program, select("1, 2"), "delete") == ""
    before = ids_of(world, table)
    assert set(before) == {2, 3, 4}
    type, inner = "is of type bigint, which is of type int in the table", "named_struct('a', id)"
    for message, columns in {
        f"column ts {type}: an ordering column keeps its type": {"ts": "CAST(9 AS BIGINT)"},
        f"column s.a {type}: inside a struct": {"s": inner},
        "the column V beside the table's v": {"v": "", "V": "'y'"},
        "column id is of type string, which is of type int in the table": {"id": "CAST(id AS STRING)"},
        "column id is of type double, which is of type int in the table": {"id": "CAST(id AS DOUBLE)"},
    }.items():
        said = saved(program, select("2, 3", **columns))
        assert message in said, (columns, said)
        assert ids_of(world, table) == before
    drop = "hoodie.datasource.write.insert.drop.duplicates"
    assert f"an insert with {drop}=true in a table of type MergeOnRead" in saved(
        program, select("1, 2"), "insert", **{drop: "true"}
    )
    spelled = f"SELECT id AS ID, 'a' AS p FROM ({select('3, 4')})"
    assert "a delete of rows without the column id" in saved(program, spelled, "delete")
    assert not program.run(NAMED)
    source = "(SELECT CAST(id AS DOUBLE) AS id, 'a' AS p, CAST(2 AS INT) AS ts FROM range(3, 4)) s"
    merge = f"MERGE INTO t USING {source} ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN DELETE"
    assert "WHEN MATCHED … DELETE, whose source has id as DOUBLE (the table: INT)" in program.sql(merge)
    assert ids_of(world, table) == before
    assert saved(program, select("2, 3", ts="CAST(2 AS SMALLINT)", s="named_struct('a', CAST(7 AS SMALLINT))")) == ""
    assert program.sql(merge.replace("CAST(id AS DOUBLE)", "CAST(id AS INT)")) == ""
    # With it the table is one of Spark's data source API V2 (F381)
    assert program.run("spark.conf.set('hoodie.schema.on.read.enable', 'true')") == ""
    new = f"spark.sql({select('9, 10')!r}).writeTo('t')"
    assert "df.writeTo(…).append() (with schema evolution) is refused" in program.run(f"{new}.append()")
    truth = "__import__('pyspark.sql.functions').sql.functions.lit(True)"
    assert "df.writeTo(…).overwrite(…), INSERT INTO … REPLACE" in program.run(f"{new}.overwrite({truth})")
    after = ids_of(world, table)
    assert {id: (row.ts, row.s.a) for id, row in after.items()} == {2: (2, 7), 4: (1, 4)}
    program.end()
    table.audited(None, without=ROWS)


@pytest.mark.extra
def test_programs_delete_nothing_where_it_would_come_back(world: World, agent: Process) -> None:
    merge = {"partialUpdates": "IgnoreNulls"}
    table = world.table("partial-saves", type="MergeOnRead", services=OFF, merge=merge, orderingFields=[])
    world.create(table, agent=AGENT, process=agent)
    program = Told(table, "program")
    assert saved(program, select("1, 4")) == ""
    refused = "in a MergeOnRead table with merge.partialUpdates is refused"
    assert f"a delete {refused}" in saved(program, select("1, 2"), "delete")
    assert f"rows with the column _hoodie_is_deleted {refused}" in saved(
        program, select("1, 2", _hoodie_is_deleted="true")
    )
    assert not program.run(NAMED)
    assert f"DELETE FROM {refused}" in program.sql("DELETE FROM t WHERE id = 1")
    assert saved(program, select("1, 2", v="CAST(NULL AS STRING)", ts="CAST(5 AS INT)")) == ""
    assert {id: (row.v, row.ts) for id, row in ids_of(world, table).items()} == {1: ("x", 5), 2: ("x", 1), 3: ("x", 1)}
    program.end()
    table.audited(None, without=ROWS)


@pytest.mark.extra
def test_no_two_records_of_a_program_are_one(world: World, agent: Process) -> None:
    """F377: a key of several columns that reads like another one, two zeros, and an empty text as
    partition, which has the folder of null.
    """
    table = world.table("confused-keys", recordKeyFields=["id", "v", "d"], orderingFields=[], services=OFF)
    world.create(table, agent=AGENT, process=agent)
    program = Told(table, "program", duplicates="Allow")

    def save(id: str, v: str, d: str, p: str, operation: str) -> str:
        return saved(program, f"SELECT '{id}' AS id, '{v}' AS v, CAST('{d}' AS DOUBLE) AS d, {p} AS p", operation)

    assert save("1", "2,w:3", "0.0", "'a'", "upsert") == ""
    for operation in ("upsert", "bulk_insert"):
        for row, column, rule in (
            (("1,v:2", "3", "1", "'a'"), "id", "it reads like the next column of the key"),
            (("1", "__null__", "1", "'a'"), "v", "this is how a key of several columns says null or empty"),
            (("1", "2,w:3", "-0.0", "'a'"), "d", "0.0 and -0.0 are one number"),
            (("1", "2", "1", "''"), "p", "a partition's value is not empty"),
            (("1", "2", "1", "'__HIVE_DEFAULT_PARTITION__'"), "p", "this is the name of the partition for null"),
        ):
            said = save(*row, operation)
            assert f"[HUDIOP-BAD-DATA] column {column} of record '" in said, (row, operation, said)
            assert rule in said, (row, operation, said)
    assert save("1", "2", "1", "CAST(NULL AS STRING)", "upsert") == ""
    rows = world.spark().read.format("hudi").load(table.path).select("id", "v", "d", "p").collect()
    assert sorted(map(str, rows)) == sorted(
        ["Row(id='1', v='2,w:3', d=0.0, p='a')", "Row(id='1', v='2', d=1.0, p=None)"]
    )
    program.end()
    table.audited(None, without=ROWS)


@pytest.mark.extra
def test_no_row_of_a_bucket_is_left_out(world: World, agent: Process) -> None:
    """F375: each new row whose bucket had a file was left out, and the save succeeded."""
    table = world.table("bucket-saves", services=OFF, index={"type": "Bucket", "buckets": 1})
    world.create(table, agent=AGENT, process=agent)
    program = Told(table, "program", duplicates="Allow")
    assert saved(program, select("1, 3")) == ""
    for name, value in (
        ("hoodie.datasource.write.insert.drop.duplicates", "true"),
        ("hoodie.datasource.insert.dup.policy", "drop"),
    ):
        assert f"an insert with {name}={value}" in saved(program, select("3, 5"), "insert", **{name: value})
    assert saved(program, select("3, 5"), "insert") == ""
    assert set(ids_of(world, table)) == {1, 2, 3, 4}
    program.end()
    table.audited(None, without=ROWS)


@pytest.mark.extra
def test_a_program_writes_no_key_twice(world: World, agent: Process) -> None:
    """F478: inserts look no key up, and an overwrite keeps both rows of a key that it has twice."""
    table = world.table("keys-of-programs", services=OFF)
    world.create(table, agent=AGENT, process=agent)
    program, allowed = Told(table, "program"), Told(table, "allowed", duplicates="Allow")
    assert saved(program, select("1, 3")) == ""
    for operation in ("insert", "bulk_insert"):
        said = saved(program, select("2, 4"), operation)
        assert f"hoodie.datasource.write.operation = '{operation}': a key that the table has already would" in said
        assert "use upsert, or set duplicates: Allow in the HudiWriter" in said
    assert not program.run(NAMED)
    row = "INSERT INTO t SELECT 2 AS id, 'y' AS v, 2 AS ts, named_struct('a', 2) AS s, 'a' AS p"
    assert not program.run("spark.conf.set('hoodie.spark.sql.insert.into.operation', 'insert')")
    assert "hoodie.datasource.write.operation = 'insert': a key that the table has" in program.sql(row)
    assert not program.run("spark.conf.unset('hoodie.spark.sql.insert.into.operation')")
    assert set(ids_of(world, table)) == {1, 2}
    assert not program.sql(row)
    assert {id: row.ts for id, row in ids_of(world, table).items()} == {1: 1, 2: 2}

    twice = f"{select('5, 6')} UNION ALL {select('5, 6', ts='CAST(7 AS INT)')}"
    combines = "hoodie.combine.before.insert"
    said = saved(program, twice, "insert_overwrite", **{combines: "false"})
    assert f"{combines} = 'false': a key that the rows have twice would exist twice: it must be true" in said
    assert saved(program, twice, "insert_overwrite") == ""
    assert {id: row.ts for id, row in ids_of(world, table).items()} == {5: 7}

    # The HudiWriter allows it, and is told so (DuplicatesAllowed).
    assert saved(allowed, select("5, 7"), "insert") == ""
    assert saved(allowed, select("6, 7"), "bulk_insert") == ""
    found = [row.id for row in world.spark().read.format("hudi").load(table.path).select("id").collect()]
    assert sorted(found) == [5, 5, 6, 6]
    for each in (program, allowed):
        each.end()
    table.audited(None, without=UNSEEN | {"unique": "two keys are doubled, as the HudiWriter allows"})
