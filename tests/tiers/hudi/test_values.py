"""Values that a table cannot hold are refused as bad data, with column, record and rule.

No value leads out of the table (F39, F41).
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import functions

from hudi_contract.outcomes import FailureClass
from hudi_runtime.job.job import FilesSource
from hudi_runtime.process.errors import RuntimeFailure, classify
from hudi_runtime.read import files, sources
from hudi_runtime.read.progress import Progress
from hudi_runtime.table import partitions, values
from tests.support.harness.local import AGENT, Process, Table, World, rows, until
from tests.support.harness.refused_values import NO_PATHS, SCHEMA, SPEC, refusal
from tests.support.world.fake_table import FakeStorage

PATHS = ("a b", " a", "50%", "#x", "a?b", "*", "[a]", "{a}", "a,b", "a+b", "ü", "2024/01/02", "007", "x" * 200, None)

COSTLY_TYPES = [pytest.param("CopyOnWrite", marks=pytest.mark.extra), "MergeOnRead"]
"""A minute or two each; the rules are the same, and a null damages a MergeOnRead table only."""


def test_a_partition_is_a_value_that_its_path_gives_back(world: World) -> None:
    """Everything else is refused, by a message that says where it stands."""
    spark = world.spark()
    for value, why in NO_PATHS.items():
        said = refusal(spark.createDataFrame([("good", "a", "v", 1), ("k", value, "v", 1)], SCHEMA))
        assert said.startswith("[HUDIOP-BAD-DATA] column p of record id='k' is '"), (value, said)
        assert why in said, (value, said)
    taken = spark.createDataFrame([("k", value, "v", 1) for value in PATHS], SCHEMA)
    assert refusal(taken) == ""
    assert values.held(taken, SPEC).count() == len(PATHS), "no row is left out, whatever its partition"
    assert "several partition columns" in refusal(taken, replace(SPEC, hive_style=True))
    assert "several partition columns" in refusal(taken, replace(SPEC, partitions=("v", "p")))
    for kind in ("timestamp", "double", "decimal(10,2)", "binary"):
        with pytest.raises(
            RuntimeFailure, match=r"column p: it is .*; a partition column holds text, whole numbers, booleans or dates"
        ) as wrong:
            values.held(taken.selectExpr("id", f"cast(null AS {kind}) AS p", "v", "ts"), SPEC)
        assert wrong.value.failure is FailureClass.SCHEMA_MISMATCH


@pytest.mark.parametrize("threshold", ["-1", "10485760"], ids=["sorted", "broadcast"])
def test_rows_that_a_join_leaves_out_are_not_asked(world: World, threshold: str) -> None:
    """F101: Spark moved the check below the join, and a writer was refused for rows that its batch
    did not have.
    """
    # local files: the batch's own files, no table
    spark, folder = world.spark(), f"file://{world.folder}/landing/joined-{threshold}"
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", threshold)
    spark.createDataFrame([("", "b", "v", 1), ("k", "a", "v", 1)], SCHEMA).write.parquet(f"{folder}/rows")
    spark.createDataFrame([("k",)], "id string").write.parquet(f"{folder}/wanted")
    frame = spark.read.parquet(f"{folder}/rows").join(spark.read.parquet(f"{folder}/wanted"), "id")
    assert refusal(frame) == ""
    declared: Any = SimpleNamespace(table=SPEC, partitions=("a",))
    assert partitions.held(frame, declared).count() == 1
    spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")


def test_an_ordering_column_has_a_value(world: World) -> None:
    """Also where the rows come from a file, which is named then. A delete need not have one."""
    spark = world.spark()
    null = spark.createDataFrame([("k", "a", "v", None)], SCHEMA)
    assert (
        refusal(null)
        == "[HUDIOP-BAD-DATA] column ts of record id='k' is null: an ordering column has a value in every row"
    )
    assert values.held(null, SPEC, delete=True).count() == 1
    file = world.lake / "no-ordering.csv"
    file.write_text("id,p,v,ts\nk1,a,v,1\nk2,a,v,\n")
    read = spark.read.csv(world.url(file), header=True, inferSchema=True)
    assert f"record id='k2' in {world.url(file)} is null" in refusal(read)
    joined = read.join(read.select("id"), "id").union(read)
    assert "record id='k2' is null" in refusal(joined).replace(f" in {world.url(file)}", "")


def test_keys_of_several_columns_stay_apart(world: World) -> None:
    """Hudi writes such a key as one text: without a rule two records could have the same."""
    spark, spec = world.spark(), replace(SPEC, record_keys=("id", "v"))
    assert "column id of record id='1,v:2', v='3'" in refusal(
        spark.createDataFrame([("1,v:2", "a", "3", 1)], SCHEMA), spec
    )
    for word in values.KEY_WORDS:
        assert "a key of several columns" in refusal(spark.createDataFrame([(word, "a", "3", 1)], SCHEMA), spec)
    assert (
        refusal(
            spark.createDataFrame(
                [("1,v", "a", "2:3", 1), (None, "a", "3", 1), ("", "a", "3", 1), ("1", "a", None, 1)], SCHEMA
            ),
            spec,
        )
        == ""
    )
    for key, other in ((None, None), ("", None), (None, ""), ("", "")):
        said = refusal(spark.createDataFrame([("1", "a", "3", 1), (key, "a", other, 1)], SCHEMA), spec)
        assert said.endswith(": one column of a record key at least has a value"), said


def test_a_record_has_a_key(world: World) -> None:
    """F80: else Hudi fails in the middle of the write, and says neither which record it was nor
    that it is the data's fault. A delete names records by it.
    """
    spark = world.spark()
    for value, shown, rule in ((None, "null", "has a value"), ("", "''", "is not empty")):
        frame = spark.createDataFrame([("good", "a", "v", 1), (value, "a", "v", 1)], SCHEMA)
        wanted = f"[HUDIOP-BAD-DATA] column id of record id={shown} is {shown}: a record key {rule}"
        assert refusal(frame) == wanted
        with pytest.raises(Exception, match="HUDIOP-BAD-DATA"):
            values.held(frame, SPEC, delete=True).write.format("noop").mode("overwrite").save()
    assert refusal(spark.createDataFrame([(" ", "a", "v", 1)], SCHEMA)) == ""
    assert refusal(spark.createDataFrame([(None, "a", "v", 1)], SCHEMA), replace(SPEC, record_keys=())) == "", (
        "Hudi makes the keys of such a table"
    )


@pytest.mark.parametrize("operation", [pytest.param("insert", marks=pytest.mark.extra), "bulk_insert"])
def test_an_insert_deletes_nothing(world: World, agent: Process, operation: str) -> None:
    """F108: a bulk insert writes such a row, and readers show it."""
    table = world.table(f"deletes-by-{operation.replace('_', '-')}")
    world.create(table, agent=AGENT, process=agent)
    good, bad = (1, "a", "good", 1, False), (2, "a", "gone", 1, True)
    schema = "id int, p string, v string, ts long, _hoodie_is_deleted boolean"
    batches = [{"schema": schema, "rows": [good, bad]}]
    writer = table.writer("inserts", operation=operation, python={"batches": batches})
    assert writer.wait() == 10, writer.log()[-4000:]
    told = writer.termination()
    assert (told["class"], told["commits"]) == ("BadData", 0), told
    assert f"column _hoodie_is_deleted of record id='2' is 'true': {values.DELETE_RULE}" in told["message"], told
    writer = table.writer("upsert", python={"batches": batches})
    assert writer.wait() == 0, writer.log()[-4000:]
    assert [row.id for row in world.spark().read.format("hudi").load(table.path).collect()] == [1]


@pytest.mark.parametrize("type", COSTLY_TYPES)
def test_a_program_inserts_no_delete_and_one_calendar(world: World, agent: Process, type: str) -> None:
    """F108, F170: by none of Hudi's ways to insert.

    Readers would show the row of a bulk insert; other inserts would leave it out without a word,
    and its record would stay.
    """
    table = world.table(f"program-{type.lower()}", type=type)
    world.create(table, agent=AGENT, process=agent)
    results = world.folder / f"inserts-{type}.json"
    main = Path(__file__).with_name("apps") / "inserts_app.py"
    program = table.writer(
        "program", application={"mainFile": str(main), "arguments": [str(results)]}, duplicates="Allow"
    )
    program.wait()
    assert results.exists(), program.log()[-6000:]
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    told = json.loads(results.read_text())
    for way in ("deleted-as-rows", "deleted-as-records", "deleted-by-insert"):
        assert told[way].startswith(f"{FailureClass.BAD_DATA.value}: "), (way, told)
        assert "[HUDIOP-BAD-DATA]" in told[way], (way, told)
    assert "of record 'deleted-as-rows-2' is true" in told["deleted-as-rows"], told
    assert "[HUDIOP-OPTION] spark.sql.parquet.datetimeRebaseModeInWrite = 'LEGACY'" in told["another-calendar"], told
    good = ("another-zone", "good-by-bulk-insert", "good-by-insert")
    assert {way: told[way] for way in good} == dict.fromkeys(good, "")
    found = world.spark().read.format("hudi").load(table.path).select("id", "v", "_hoodie_is_deleted").collect()
    assert sorted((row.id, row.v, row._hoodie_is_deleted) for row in found) == sorted(
        (f"{way}-{number}", date(1500, 1, 1), False) for way in good for number in (1, 2)
    )


def _program_of_rows(world: World, agent: Process, type: str, kind: str, **spec: Any) -> tuple[Table, dict[str, str]]:
    """A table, and what came of each way of `rows_app.py`; empty for a write that succeeded.

    F285: the program ends Spark itself, and is not repeated.
    """
    table = world.table(f"rows-{kind}-{type.lower()}", type=type, **spec)
    world.create(table, agent=AGENT, process=agent)
    results = world.folder / f"rows-{kind}-{type}.json"
    main = Path(__file__).with_name("apps") / "rows_app.py"
    program = table.writer(
        "program", application={"mainFile": str(main), "arguments": [kind, str(results)]}, duplicates="Allow"
    )
    assert program.wait() == 0, program.log()[-6000:]
    until("what was refused is rolled back", lambda: not table.pending(), alive=agent)
    told: dict[str, str] = json.loads(results.read_text())
    good = {way for way in told if way.startswith("good ")}
    assert {way: told[way] for way in good} == dict.fromkeys(good, "")
    return table, {way: said for way, said in told.items() if way not in good}


@pytest.mark.extra
@pytest.mark.parametrize("type", ["CopyOnWrite", "MergeOnRead"])
def test_a_program_orders_each_row(world: World, agent: Process, type: str) -> None:
    """F212: by none of Hudi's ways to write can a program store a null in an ordering column, after
    which a MergeOnRead table could not be read.

    When Hudi itself compares the null with a value before it writes, it fails by itself: in a
    CopyOnWrite table, for a record that is there. Nor can it store rows of some columns (F213).
    """
    table, refused = _program_of_rows(world, agent, type, "nulls")
    some = refused.pop("MERGE of two columns")
    assert some.partition("; use ")[0] == (
        ""
        if type == "CopyOnWrite"
        else f"{FailureClass.USER_ERROR.value}: [HUDIOP-STATEMENT] MERGE INTO a MergeOnRead table that sets some of "
        "its columns (not id, p) is refused"
    ), some
    compared = {"null of a known record", "null by UPDATE", "null by MERGE of a known record"}
    for way, said in refused.items():
        if type == "MergeOnRead" or way not in compared:
            assert said.startswith(f"{FailureClass.BAD_DATA.value}: [HUDIOP-BAD-DATA] column ts of record '"), (
                way,
                said,
            )
            assert "' is null: an ordering column has a value in every row" in said, (way, said)
        assert said, way
    writer = table.writer("after", python={"batches": [{"schema": SCHEMA, "rows": [("upsert", "a", "x", 5)]}]})
    assert writer.wait() == 0, writer.log()[-4000:]
    due = [("upsert", "a", "x", 5), ("bulk-insert", "a", "w", 2), ("bulk-insert-of-records", "a", "w", 1)]
    table.audited(due, schema=SCHEMA)


@pytest.mark.parametrize("type", COSTLY_TYPES)
def test_no_row_of_a_program_is_without_the_ordering_column(world: World, agent: Process, type: str) -> None:
    """F289: the first rows of a table could be written without its ordering column, by a bulk
    insert and by an insert. Hudi itself refuses them to `INSERT INTO`.
    """
    table, refused = _program_of_rows(world, agent, type, "unordered")
    assert len(refused) == 9
    for way, said in refused.items():
        assert said, f"{way}: it was written"
    for way in ("first by bulk-insert", "first by bulk-insert-of-records", "first by insert"):
        begin = f"{FailureClass.BAD_DATA.value}: [HUDIOP-BAD-DATA] column ts of record '{way}' is missing: an ordering"
        assert refused[way].startswith(begin), (way, refused[way])
    table.audited([("insert", "a", "w", 2), ("upsert", "a", "v", 1)], schema=SCHEMA)


@pytest.mark.parametrize("type", COSTLY_TYPES)
def test_a_program_merges_as_the_statement_says(world: World, agent: Process, type: str) -> None:
    """F282, F287, F288, F293, F294, F296, F297, F298, F314: what Hudi would leave out, or decide by
    other conditions, columns or partitions, is refused.
    """
    table, refused = _program_of_rows(world, agent, type, "merges")
    begin = f"{FailureClass.USER_ERROR.value}: [HUDIOP-STATEMENT] "
    options = {way: refused.pop(way) for way in ("schema of some columns", "schema of the files")}
    for way in ("a condition on the table", "a delete by the table", "from itself by both sides"):
        said = refused.pop(way)
        if type == "CopyOnWrite":
            assert not said
        else:
            assert said.startswith(f"{begin}MERGE INTO a MergeOnRead table with a condition on its columns (("), said
    for way in ("insert alone", "update, then delete"):
        said = refused.pop(way)
        assert said.partition(" is refused; use ")[0] == ("" if type == "CopyOnWrite" else f"{begin}{OTHERWISE}"), said
    assert {way: said.removeprefix(begin).partition(" is refused; use ")[0] for way, said in refused.items()} == {
        "not in the source": "MERGE INTO with WHEN NOT MATCHED BY SOURCE",
        "delete, then update": "MERGE INTO with WHEN MATCHED … DELETE before WHEN MATCHED … UPDATE",
        "on more than the key": "MERGE INTO whose ON compares more than key and partition (v)",
        "on another column": "MERGE INTO whose ON does not compare the whole key (id)",
        "two columns for the key": "MERGE INTO whose ON compares more than key and partition (id)",
        "without the partition": "MERGE INTO whose ON does not compare the partition (p)",
        "five clauses": "MERGE INTO with more than 4 clauses WHEN MATCHED … UPDATE (5)",
        "two clauses with one condition": (
            "MERGE INTO with two clauses WHEN MATCHED … UPDATE with one condition ((s.v = 'w'))"
        ),
        "two inserts with one condition": (
            "MERGE INTO with two clauses WHEN NOT MATCHED … INSERT with one condition ((s.v = 'new'))"
        ),
        "key of another column": "MERGE INTO whose ON compares id with s.known, and whose source has a column id",
        "another key": "MERGE INTO whose UPDATE sets id to s.v, which ON compares with s.id",
        "another partition": "MERGE INTO whose INSERT sets p to 'b', which ON compares with s.p",
        "no partition": "MERGE INTO whose INSERT does not set p",
        "schema of the write": "a write with hoodie.avro.schema",
        "schema of the session": "a write with hoodie.avro.schema",
    }
    for way, name in (
        ("schema of some columns", "hoodie.write.partial.update.schema"),
        ("schema of the files", "hoodie.write.schema"),
    ):
        assert f"[HUDIOP-OPTION] {name} = '" in options[way], options[way]
    due = [("u", "a", "both", 12), ("k", "a", "self", 3), ("n", "a", "new", 2), ("m", "a", "new", 2)]
    if type == "MergeOnRead":
        due = [("d", "a", "v", 1), ("u", "a", "v", 1), ("k", "a", "self", 3)]
    table.audited(due, schema=SCHEMA)


def test_a_program_merges_into_a_table_with_ordering_columns(world: World, agent: Process) -> None:
    """F295: without them Hudi looks no record up unless there is an UPDATE, and keeps each of
    several rows of one record. Also of a table without commits, which only its name says.
    """
    table, refused = _program_of_rows(world, agent, "CopyOnWrite", "matches", orderingFields=[])
    assert {said.partition(" is refused; use ")[0] for said in refused.values()} == {
        f"{FailureClass.USER_ERROR.value}: [HUDIOP-STATEMENT] MERGE INTO a table without orderingFields"
    }, refused
    assert refused.keys() == {"first", "insert alone", "delete alone", "update and insert"}
    table.audited([("d", "a", "v", 1), ("u", "a", "v", 1), ("k", "a", "v", 1)], schema=SCHEMA)


OTHERWISE = "MERGE INTO a MergeOnRead table whose WHEN NOT MATCHED … INSERT differs from its WHEN MATCHED … UPDATE"
OTHER_TYPE = "with WHEN MATCHED … DELETE, whose source has ts as INT (the table: BIGINT)"


def test_a_program_merges_into_log_files(world: World, agent: Process) -> None:
    """F310, F311: with a bucket index a new record of a MergeOnRead table counts as matched, and a
    delete has the type of the source's ordering column.
    """
    table, refused = _program_of_rows(world, agent, "MergeOnRead", "buckets", index={"type": "Bucket", "buckets": 1})
    begin = f"{FailureClass.USER_ERROR.value}: [HUDIOP-STATEMENT] MERGE INTO "
    said = {way: words.removeprefix(begin).partition(" is refused; use ")[0] for way, words in refused.items()}
    assert said.pop("ordering of another type") == OTHER_TYPE
    ways = ("insert alone", "update alone", "delete and insert", "other conditions", "other values")
    differs = "whose WHEN NOT MATCHED … INSERT differs from its WHEN MATCHED … UPDATE"
    assert said == dict.fromkeys(ways, f"a MergeOnRead table {differs}")
    due = [("u", "a", "w", 2), ("l", "a", "new", 2), ("n", "a", "new", 2)]
    table.audited(due, schema=SCHEMA)


def test_a_program_inserts_by_no_wrong_name(world: World, agent: Process) -> None:
    """F312: columns whose names were wrong were taken by their position. F311 in a CopyOnWrite
    table. F313: a delete without the column of the partition deleted nothing, and succeeded. F321:
    an INSERT INTO of a known key added a second record. F322: a write with an internal
    option stored rows under keys that were not theirs.
    """
    table, refused = _program_of_rows(world, agent, "CopyOnWrite", "names")
    assert f"[HUDIOP-STATEMENT] MERGE INTO {OTHER_TYPE} is refused" in refused.pop("ordering of another type")
    internal = "[HUDIOP-STATEMENT] a write with the internal option _hoodie.spark.sql.writes.prepped is refused"
    assert internal in refused.pop("key of the meta column")
    for way, column in (("delete without p", "p"), ("upsert without p", "p")):
        assert f"rows without the column {column}, which is part of the table's" in refused.pop(way)
    for way, named in (("upsert without id", "(p, v, ts)"), ("upsert without ID", "(ID, p, v, ts)")):
        said = refused.pop(way)
        assert "[HUDIOP-STATEMENT] a write of rows without the column id, which is part of the table's" in said, said
        assert f"the rows have {named[1:-1]})" in said, said
    assert refused.keys() == {"by name", "by name after a query", "by path and name", "by a wrong name"}
    for way, said in refused.items():
        assert "[HUDIOP-STATEMENT] INSERT INTO … BY NAME is refused; use INSERT INTO table (columns)" in said, (
            way,
            said,
        )
    table.audited([("k", "a", "x!", 4), ("n", "a", "w!", 3), ("m", "a", "late!", 5)], schema=SCHEMA)


@pytest.mark.extra
def test_a_program_writes_no_partition_that_its_path_does_not_preserve(world: World, agent: Process) -> None:
    """F212: rows of a program whose partition is `b//c` were committed and in no snapshot."""
    table, refused = _program_of_rows(world, agent, "CopyOnWrite", "partitions")
    for way, said in refused.items():
        assert said.startswith(f"{FailureClass.BAD_DATA.value}: "), (way, said)
    for way in ("partition 'x=y' by upsert", "partition 'b//c' by upsert", "partition 'b//c' by bulk-insert"):
        assert "[HUDIOP-BAD-DATA] the partition of a row is '" in refused[way], refused[way]
    table.audited([("upsert", "a", "v", 1), ("bulk-insert", "a", "v", 1), ("null", None, "v", 1)], schema=SCHEMA)


@pytest.mark.extra
def test_each_partition_column_has_one_folder(world: World, agent: Process) -> None:
    """F284: a program's row of the partition `b/c` made a table with two partition columns
    unreadable.
    """
    table, refused = _program_of_rows(world, agent, "CopyOnWrite", "folders", partitionFields=["p", "v"])
    for way, said in refused.items():
        assert said.startswith(f"{FailureClass.BAD_DATA.value}: [HUDIOP-BAD-DATA] the partition of a row is '"), way
        assert "it has 3 folders for 2 partition columns" in said, (way, said)
    assert len(refused) == 3
    table.audited([("upsert", "a", "v", 1), ("bulk-insert", "a", "v", 1)], schema=SCHEMA)


def test_a_program_leaves_nothing_beside_its_rows(world: World, agent: Process) -> None:
    """F280, F283: neither the checkpoint of a stream nor a copied file comes into the table's
    folder.
    """
    table, refused = _program_of_rows(world, agent, "CopyOnWrite", "beside")
    for way, said in refused.items():
        assert "[HUDIOP-STATEMENT] only Hudi writes files into a table's folder" in said, (way, said)
    assert len(refused) == 3
    assert {path.name for path in table.folder.iterdir()} == {".hoodie", "a"}
    assert not [path for path in (table.folder / "a").iterdir() if path.is_dir()]
    table.audited([("upsert", "a", "v", 1)], schema=SCHEMA)


def test_a_python_source_that_saves_by_itself_is_a_program(world: World, agent: Process) -> None:
    """F281: its own rows are checked like those of an application."""
    table = world.table("saving", type="MergeOnRead")
    world.create(table, agent=AGENT, process=agent)
    code = Path(__file__).with_name("apps") / "saving_source.py"
    writer = table.writer("saving", file=code, function="saves", python={"ordering": [1, None]})
    assert writer.wait() == 10, writer.log()[-4000:]
    told = writer.termination()
    assert (told["class"], told["commits"]) == ("BadData", 0), told
    assert "column ts of record 'own-1' is null" in told["message"], told
    table.audited([("own-0", "a", "v", 1)], schema=SCHEMA)


@pytest.mark.parametrize("kind", ["float", "double"])
def test_zero_is_one_key(world: World, kind: str) -> None:
    """F99: 0.0 and -0.0 are equal to every query, and were two records with one key."""
    spark = world.spark()
    zeros = spark.sql(
        f"SELECT CAST(id AS {kind}) AS id, 'a' AS p, 'v' AS v, 1L AS ts FROM VALUES ('0.0'), ('-1.5'), ('NaN'), "
        "('-Infinity') AS t(id)"
    )
    assert refusal(zeros) == ""
    for spec, rest in ((SPEC, ""), (replace(SPEC, record_keys=("id", "v")), ", v='v'")):
        said = refusal(zeros.union(zeros.where("id = 0").withColumn("id", -functions.col("id"))), spec)
        assert said == f"[HUDIOP-BAD-DATA] column id of record id='-0.0'{rest} is '-0.0': {values.NEGATIVE_ZERO}"


def test_keys_and_ordering_values_are_of_types_that_have_one_text_and_one_order(world: World) -> None:
    """F80, F81: Hudi's ways to write make different keys of one value of another type, and its
    readers cannot compare it.
    """
    spark = world.spark()
    plain = spark.createDataFrame([("k", "a", "v", 1)], SCHEMA)
    for kind in ("binary", "array<int>", "struct<a:int>", "map<string,int>"):
        for column, role in (("id", "a record key holds"), ("ts", "an ordering column holds")):
            frame = plain.withColumn(column, functions.expr(f"CAST(null AS {kind})"))
            with pytest.raises(
                RuntimeFailure, match=rf"column {column}: it is {re.escape(kind)}; {role} text, numbers,"
            ) as wrong:
                values.held(frame, SPEC)
            assert wrong.value.failure is FailureClass.SCHEMA_MISMATCH
        values.held(plain.withColumn("ts", functions.expr(f"CAST(null AS {kind})")), SPEC, delete=True)
    for kind in ("decimal(10,2)", "date"):
        ordered = plain.withColumn(
            "ts", functions.expr(f"CAST('2024-01-01' AS {kind})" if kind == "date" else f"CAST(1 AS {kind})")
        )
        assert refusal(ordered) == ""
        with pytest.raises(
            RuntimeFailure,
            match=(
                rf"column ts: it is {re.escape(kind)}; Hudi cannot compare decimals and dates when it updates a "
                r"CopyOnWrite"
            ),
        ):
            values.held(ordered, replace(SPEC, type="COPY_ON_WRITE"))
    for kind in (
        "tinyint",
        "bigint",
        "float",
        "double",
        "decimal(38,10)",
        "boolean",
        "date",
        "timestamp",
        "timestamp_ntz",
        "string",
    ):
        values.held(
            plain.withColumn("id", functions.expr(f"CAST(null AS {kind})")).withColumn(
                "ts", functions.expr(f"CAST(null AS {kind})")
            ),
            SPEC,
        )


def test_a_timestamp_is_one_key_whatever_writes_it(world: World, agent: Process) -> None:
    """F92: what a bulk insert has written is found by the upsert after it, and two records within
    one millisecond are two.
    """
    table = world.table("timestamps", type="MergeOnRead")
    world.create(table, agent=AGENT, process=agent)
    times = ("1969-12-31 23:59:59.999999", "1969-12-31 23:59:59.999998", "2024-01-01 10:00:00.5")
    columns = (
        "p, v, ts FROM VALUES "
        + ", ".join(f"('{time}', 'a', '{{v}}{n}', {{ts}}L)" for n, time in enumerate(times))
        + " AS t(id, p, v, ts)"
    )
    for operation, v, ts in (("bulk_insert", "old", 1), ("upsert", "new", 2)):
        sql = {"query": f"SELECT CAST(id AS timestamp) AS id, {columns.format(v=v, ts=ts)}", "views": []}
        writer = table.writer(operation, operation=operation, sql=sql)
        assert writer.wait() == 0, writer.log()[-4000:]
    due = [(datetime.fromisoformat(f"{time}+00:00"), "a", f"new{n}", 2) for n, time in enumerate(times)]
    table.audited(due, schema="id timestamp, p string, v string, ts long")


GOOD = b'{"id": 1, "p": "a", "v": "x", "ts": 1}\n'
COMPRESSED = gzip.compress(b"".join(b'{"id": %d, "v": "x%d"}\n' % (n, n * 7919) for n in range(5000)))
FILES: dict[str, tuple[str, bytes, dict[str, str]]] = {
    "no-json": ("json", GOOD + b'{"id": 2, "p": \n', {}),
    "too-many": ("csv", b"id,p,v,ts\n1,a,x,1\n2,a,y,1,extra\n", {"header": "true"}),
    "too-few": ("csv", b"id,p,v,ts\n1,a,x,1\n2,a\n", {"header": "true"}),
    "cut-off": ("json", COMPRESSED[:-2000], {}),
    "empty": ("parquet", b"", {}),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_that_cannot_be_read_is_named(world: World, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is bad data; nothing in it becomes null in silence, unless the user's options say so."""
    spark = world.spark()
    format, content, options = FILES[case]
    folder = world.lake / "landing" / case
    folder.mkdir(parents=True)
    bad = folder / f"2.{format}{'.gz' if case == 'cut-off' else ''}"
    bad.write_bytes(content)
    if format == "json":
        (folder / "1.json").write_bytes(GOOD)
    monkeypatch.setattr(sources.pg, "at_savepoints", lambda *_: ())
    source = FilesSource(format, (f"{world.url(folder)}/",), options, None)
    job: Any = type("Job", (), {"writer": "ns/w", "interval": None})
    failure: Exception | None = None
    try:
        (batch,) = list(sources._file_batches(spark, job, source, SimpleNamespace(storage=FakeStorage()), Progress()))  # type: ignore[arg-type]
        frame = batch.frame.selectExpr("id")  # type: ignore[union-attr]
        frame.write.format("noop").mode("overwrite").save()
    except Exception as error:
        failure = error if isinstance(error, RuntimeFailure) else batch.blame(error)
    assert failure is not None, "it was read"
    said = classify(failure)
    assert said.kind is FailureClass.BAD_DATA, said
    assert said.message.startswith(f"file {world.url(bad)}: "), said
    lenient = replace(source, options={**options, "mode": "PERMISSIVE"})
    if format in files.STRICT and case != "cut-off":
        assert files.read(spark, lenient, [world.url(bad)]).count() == 2


def test_no_file_leaves_the_table(world: World, agent: Process) -> None:
    """A value from a row puts nothing into another table's folder, makes no row vanish and no table
    unreadable: not by the runtime, which refuses the batch, and not by a program that writes by
    itself, whose file the storage wrapper refuses.
    """
    victim, table = world.table("victim"), world.table("hostile-values", type="MergeOnRead")
    for one in (victim, table):
        world.create(one, agent=AGENT, process=agent)
    good = rows(range(3), "a", "good", 1)
    assert table.writer("seed", python={"batches": [{"rows": good}]}).wait() == 0

    def files() -> set[Path]:
        return {path for path in victim.folder.rglob("*") if path.is_file()} | set(table.folder.parent.iterdir())

    before = files()
    for number, bad in enumerate(((7, "../victim/a", "bad", 2), (7, "a//b", "bad", 2), (1, "a", "bad", None))):
        writer = table.writer(f"bad-{number}", python={"batches": [{"rows": [(0, "a", "also good", 2), bad]}]})
        assert writer.wait() == 10, writer.log()[-4000:]
        told = writer.termination()
        assert (told["class"], told["commits"]) == ("BadData", 0), told
        assert f"of record id='{bad[0]}' is" in told["message"], told
    program = table.writer(
        "program",
        application={
            "mainFile": str(Path(__file__).with_name("apps") / "leaving_app.py"),
            "arguments": ["../victim/a"],
        },
    )
    assert program.wait() == 10, program.log()[-4000:]
    # On file systems with a rename Hudi hides the refusal, and says that its own file is not there.
    assert program.termination()["class"] in ("BadData", "UserError"), program.termination()
    assert files() == before
    until("what was begun is rolled back", lambda: not table.pending(), alive=agent)
    table.audited(good)
