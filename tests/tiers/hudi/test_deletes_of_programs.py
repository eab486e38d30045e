"""Deletes of programs in a MergeOnRead table with ordering fields: each deletes the records that it
names, or is refused with a message that says why (F327-F329, F332, F333). So are statements in a
session that makes something else of them (F330).
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.harness.compactions import OFF
from tests.support.harness.local import AGENT, Process, World, rows
from tests.support.harness.told import Told
from tests.support.oracle import not_seen

APP = Path(__file__).parent / "apps" / "own_deletes_app.py"
NAMED = "spark.sql(f\"CREATE TABLE t USING hudi LOCATION '{path}'\")"
NULL = "[HUDIOP-BAD-DATA] a delete of a row without a record key: id=null, p="
REFUSED = {
    "the first of all commits": "[HUDIOP-STATEMENT] a delete in a table that nobody has written rows to is refused",
    "null": f"{NULL}null: column id has a value in each row",
    "null among others": f"{NULL}7: column id has a value in each row",
    "null of two sources": f"{NULL}null: column id has a value in each row",
    "a double": "column id is of type double, which is of type bigint in the table",
    "a text": "column id is of type string, which is of type bigint in the table",
    "a text as partition": "column p is of type string, which is of type int in the table",
    **{
        f"{operation} in the session: {statement}": "hoodie.datasource.write.operation in the session is refused"
        for operation in ("delete", "insert")
        for statement in ("UPDATE", "DELETE", "INSERT")
    },
    **{
        f"{what}: {statement}": f"[HUDIOP-OPTION] {option}"
        for what, option in (
            (
                "what changed alone",
                "hoodie.datasource.query.type = 'incremental': it decides what becomes of the table",
            ),
            ("an old state", "as.of.instant = '"),
        )
        for statement in ("UPDATE", "DELETE")
    },
    **{
        f"UPDATE with {setting}": f"an UPDATE or MERGE INTO with {setting}={value} in the session is refused"
        for setting, value in (
            ("hoodie.datasource.write.insert.drop.duplicates", "true"),
            ("hoodie.datasource.insert.dup.policy", "drop"),
        )
    },
}


def test_a_delete_deletes_what_it_names_or_is_refused(world: World, agent: Process) -> None:
    table = world.table("own-deletes", type="MergeOnRead", services=OFF)
    world.create(table, agent=AGENT, process=agent)
    notes = world.folder / "own-deletes.json"
    program = table.writer("program", application={"mainFile": str(APP), "arguments": [str(notes)]})
    assert program.wait() == 0, program.log()[-4000:]
    found = json.loads(notes.read_text())
    assert REFUSED.keys() <= found.keys()
    for way, message in found.items():
        assert REFUSED[way] in message if way in REFUSED else not message, (way, message)
    found_rows = world.spark().read.format("hudi").load(table.path).select("id", "v").collect()
    assert {tuple(row) for row in found_rows} == {(id, "x") for id in (0, 7, 9, 2**53, 2**53 + 1)}
    table.audited(
        [(id, None, "x", 5, None) for id in (0, 7, 9, 2**53, 2**53 + 1)],
        schema="id long, p int, v string, ts long, added string",
    )


@pytest.mark.extra
def test_a_record_has_one_key_whatever_its_type(world: World, agent: Process) -> None:
    """F366, F367, F371: where Hudi compares keys it compares texts. A delete by those of another
    type deleted nothing, an upsert by wider ones added the record a second time.
    """
    table = world.table("typed-keys", type="CopyOnWrite", recordKeyFields=["d", "n"], services=OFF)
    world.create(table, agent=AGENT, process=agent)
    program = Told(table, "program")

    def save(ids: str, *types: str, operation: str = "upsert", v: str = "x") -> str:
        keys = (("id / 2", "d"), ("id / 4", "n"), ("1", "p"))
        named = ", ".join(f"CAST({value} AS {type}) AS {name}" for (value, name), type in zip(keys, types, strict=True))
        query = f"SELECT {named}, {v!r} AS v, id AS ts, array(nullif({v!r}, 'z')) AS tags FROM range({ids})"
        return program.run(f"save({query!r}, {operation!r})")

    assert not save("1, 5", "DOUBLE", "DECIMAL(10,2)", "INT")
    for types, name in (
        (("INT", "DECIMAL(10,2)", "INT"), "d"),
        (("STRING", "DECIMAL(10,2)", "INT"), "d"),
        (("FLOAT", "DECIMAL(10,2)", "INT"), "d"),
        (("DOUBLE", "DOUBLE", "INT"), "n"),
        (("DOUBLE", "DECIMAL(12,4)", "INT"), "n"),
        (("DOUBLE", "DECIMAL(10,2)", "STRING"), "p"),
    ):
        said = save("2, 3", *types, operation="delete")
        assert f"[HUDIOP-STATEMENT] a delete of rows whose column {name} is of type" in said, (types, said)
    for types, name in (
        (("FLOAT", "DECIMAL(10,2)", "INT"), "d"),
        (("INT", "DECIMAL(10,2)", "INT"), "d"),
        (("STRING", "DECIMAL(10,2)", "INT"), "d"),
        (("DOUBLE", "DECIMAL(12,4)", "INT"), "n"),
        (("DOUBLE", "DECIMAL(10,2)", "DOUBLE"), "p"),
    ):
        said = save("2, 3", *types, v="second")
        assert f"[HUDIOP-STATEMENT] a write of rows whose column {name} is of type" in said, (types, said)
    assert not save("1, 2", "DOUBLE", "DECIMAL(10,2)", "BIGINT", operation="delete")
    assert not save("4, 5", "DOUBLE", "DECIMAL(12,2)", "SMALLINT", v="new")
    assert not program.run(NAMED)
    assert not program.sql("DELETE FROM t WHERE d = 1")
    found = world.spark().read.format("hudi").load(table.path).select("d", "n", "v").collect()
    assert sorted((row.d, str(row.n), row.v) for row in found) == [(1.5, "0.75", "x"), (2.0, "1.00", "new")]
    # F380: Parquet's old form of lists holds no null, so that this row cannot be written.
    old_lists = "parquet.avro.write-old-list-structure"
    assert not program.run(f"spark.sparkContext._jsc.hadoopConfiguration().set({old_lists!r}, 'true')")
    said = program.sql("UPDATE t SET tags = array('y', NULL) WHERE d = 2")
    assert "Array contains a null element at 1" in said, said
    program.end()
    compared = {"rows": "its rows are compared above"}
    table.audited(None, without=compared | not_seen("hudi-rs", "incremental", "overlap"))


def test_a_writer_that_deletes_before_anybody_has_written(world: World, agent: Process) -> None:
    """It is the user's error, and is not repeated (F332)."""
    table = world.table("deletes-first")
    world.create(table, agent=AGENT, process=agent)
    deletes = table.writer("deletes", operation="delete", python={"batches": [{"rows": rows([1], "a", "", 1)}]})
    assert deletes.wait() == 10, deletes.log()[-4000:]
    told = deletes.termination()
    assert (told["class"], told["commits"]) == ("UserError", 0)
    assert REFUSED["the first of all commits"] in told["message"]
    assert not table.timeline().instants
