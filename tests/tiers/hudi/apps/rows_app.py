"""A program that writes rows which a table cannot hold, by each of Hudi's ways to write.

One way after the other, each with a key of its own. Arguments: the kind (one of `KINDS`), and the
file for what came of each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import classify_causes, describe_causes, java_causes

OPERATION = "hoodie.datasource.write.operation"
ROW_WRITER = "hoodie.datasource.write.row.writer.enable"
BULK = {OPERATION: "bulk_insert"}
BY_RECORDS = {**BULK, ROW_WRITER: "false"}
INSERT, UPSERT = {OPERATION: "insert"}, {OPERATION: "upsert"}
SAVES: Mapping[str, Mapping[str, str]] = {
    "upsert": UPSERT,
    "insert": INSERT,
    "bulk-insert": BULK,
    "bulk-insert-of-records": BY_RECORDS,
}
PARTITIONS = ("x:y", "x=y", "b//c", "a/", "..", "a%41")
SCHEMA = "id string, p string, v string, ts long"

current = current_context()
spark = current.spark


def save(frame: DataFrame, options: Mapping[str, str]) -> None:
    """Append these rows."""
    frame.write.format("hudi").options(**current.table_options()).options(**options).mode("append").save(
        current.table_path
    )


def rows(*values: tuple[str, str | None, str, int | None]) -> DataFrame:
    """One file of these rows."""
    return spark.createDataFrame(list(values), SCHEMA).coalesce(1)


def sql(statement: str) -> None:
    """Run a statement on the table, which is named `t`."""
    spark.sql(f"CREATE TABLE IF NOT EXISTS t USING hudi LOCATION '{current.table_path}'")
    spark.sql(statement)


def nulls() -> Mapping[str, Callable[[], None]]:
    """Ways to write null into an ordering column, and some that do not."""
    found: dict[str, Callable[[], None]] = {}
    for name, options in SAVES.items():
        found[f"good by {name}"] = lambda name=name, options=options: save(rows((name, "a", "v", 1)), options)
        found[f"null by {name}"] = lambda name=name, options=options: save(
            rows((f"good beside null by {name}", "a", "v", 1), (f"null by {name}", "a", "v", None)), options
        )
    found["null of a known record"] = lambda: save(rows(("upsert", "a", "w", None)), UPSERT)
    found["null by INSERT"] = lambda: sql("INSERT INTO t (id, v, ts, p) VALUES ('n1', 'v', NULL, 'a')")
    found["null by UPDATE"] = lambda: sql("UPDATE t SET ts = NULL WHERE id = 'upsert'")
    none = "CAST(NULL AS bigint)"
    for way, id in (("a new record", "n2"), ("a known record", "insert")):
        values = f"SELECT '{id}' AS id, 'w' AS v, {none} AS ts, 'a' AS p"
        found[f"null by MERGE of {way}"] = merge(values, RECORD, f"{UPDATE} {ADD}")
    values = "SELECT 'bulk-insert' AS id, 'w' AS v, 2L AS ts, 'a' AS p"
    found["MERGE of two columns"] = merge(values, RECORD, UPDATE.replace("*", "v = s.v, ts = s.ts"))
    found["good by MERGE of all columns"] = merge(values, RECORD, f"{UPDATE} {ADD}")
    found["good by UPDATE of one column"] = lambda: sql("UPDATE t SET v = 'w' WHERE id = 'bulk-insert-of-records'")
    found["good by DELETE"] = lambda: sql("DELETE FROM t WHERE id = 'insert'")
    return found


def partitions() -> Mapping[str, Callable[[], None]]:
    """Ways to write a row whose partition its path does not preserve, and some that are not."""
    found: dict[str, Callable[[], None]] = {}
    for name, options in (("upsert", UPSERT), ("bulk-insert", BULK)):
        found[f"good by {name}"] = lambda name=name, options=options: save(rows((name, "a", "v", 1)), options)
        for value in PARTITIONS:
            found[f"partition {value!r} by {name}"] = lambda name=name, options=options, value=value: save(
                rows((f"partition by {name}", value, "v", 1)), options
            )
    found["partition by INSERT"] = lambda: sql("INSERT INTO t (id, v, ts, p) VALUES ('n3', 'v', 1, 'x:y')")
    found["good by null"] = lambda: save(rows(("null", None, "v", 1)), UPSERT)
    return found


def unordered() -> Mapping[str, Callable[[], None]]:
    """Ways to write rows that do not have the ordering column, before any row has it and after."""
    found: dict[str, Callable[[], None]] = {}
    for name, options in SAVES.items():
        found[f"first by {name}"] = lambda name=name, options=options: save(
            rows((f"first by {name}", "a", "v", 1)).drop("ts"), options
        )

    def insert() -> None:
        spark.sql(f"CREATE TABLE bare (id string, v string, p string) USING hudi LOCATION '{current.table_path}'")
        spark.sql("INSERT INTO bare VALUES ('first by INSERT', 'v', 'a')")

    found["first by INSERT"] = insert
    found["good by insert"] = lambda: save(rows(("insert", "a", "v", 1)), INSERT)
    for name, options in SAVES.items():
        found[f"later by {name}"] = lambda name=name, options=options: save(
            rows((f"later by {name}", "a", "v", 1)).drop("ts"), options
        )
    found["good by upsert"] = lambda: save(rows(("insert", "a", "w", 2), ("upsert", "a", "v", 1)), UPSERT)
    return found


def merge(query: str, on: str, clauses: str) -> Callable[[], None]:
    """A MERGE INTO `t` from a query `s`."""
    return lambda: sql(f"MERGE INTO t USING ({query}) s ON {on} {clauses}")


RECORD, UPDATE, ADD = "t.id = s.id AND t.p = s.p", "WHEN MATCHED THEN UPDATE SET *", "WHEN NOT MATCHED THEN INSERT *"


def source(*rows: tuple[str, str], then: str = "") -> str:
    """Keys and values in the partition `a`; `then`: more columns."""
    return " UNION ALL ".join(f"SELECT '{id}' AS id, '{v}' AS v, 2L AS ts, 'a' AS p{then}" for id, v in rows)


def merges() -> Mapping[str, Callable[[], None]]:
    """Statements that Hudi does not execute as they say, and their alternatives."""
    changes = source(("d", "deleted"), ("u", "w"), ("n", "new"))
    some = " ".join(f"WHEN MATCHED AND s.v = '{n}' THEN UPDATE SET *" for n in range(5))
    twice = "WHEN MATCHED AND s.v = 'w' THEN UPDATE SET * " * 2
    schema = '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}]}'

    def with_option(name: str) -> Callable[[], None]:
        return lambda: save(rows(("k", "a", "x", 2)), {**UPSERT, name: schema})

    def in_session() -> None:
        spark.conf.set("hoodie.avro.schema", schema)
        try:
            sql("UPDATE t SET v = 'x' WHERE id = 'k'")
        finally:
            spark.conf.unset("hoodie.avro.schema")

    return {
        "good by upsert": lambda: save(rows(("d", "a", "v", 1), ("u", "a", "v", 1), ("k", "a", "v", 1)), UPSERT),
        "not in the source": merge(changes, RECORD, f"{UPDATE} WHEN NOT MATCHED BY SOURCE THEN DELETE"),
        "delete, then update": merge(changes, RECORD, f"WHEN MATCHED AND s.v = 'deleted' THEN DELETE {UPDATE}"),
        "on more than the key": merge(changes, f"{RECORD} AND t.v = 'x'", UPDATE),
        "on another column": merge(changes, "t.v = s.v", UPDATE),
        "two columns for the key": merge(changes, f"{RECORD} AND t.id = s.v", UPDATE),
        "without the partition": merge(changes, "t.id = s.id", f"{UPDATE} {ADD}"),
        "five clauses": merge(changes, RECORD, some),
        "two clauses with one condition": merge(changes, RECORD, f"{twice} {ADD}"),
        "two inserts with one condition": merge(changes, RECORD, "WHEN NOT MATCHED AND s.v = 'new' THEN INSERT * " * 2),
        "key of another column": merge(
            source(("x", "w"), then=", 'u' AS known"), "t.id = s.known AND t.p = s.p", UPDATE.replace("*", "v = s.v")
        ),
        "another key": merge(changes, RECORD, UPDATE.replace("*", "id = s.v, p = s.p, v = s.v, ts = s.ts")),
        "another partition": merge(changes, RECORD, ADD.replace("*", "(id, p, v, ts) VALUES (s.id, 'b', s.v, s.ts)")),
        "no partition": merge(changes, RECORD, ADD.replace("*", "(id, v, ts) VALUES (s.id, s.v, s.ts)")),
        "schema of some columns": with_option("hoodie.write.partial.update.schema"),
        "schema of the files": with_option("hoodie.write.schema"),
        "schema of the write": with_option("hoodie.avro.schema"),
        "schema of the session": in_session,
        "a condition on the table": merge(source(("k", "x")), RECORD, "WHEN MATCHED AND t.v = 'v' THEN UPDATE SET *"),
        "a delete by the table": merge(source(("k", "x")), RECORD, "WHEN MATCHED AND t.v = 'v' THEN DELETE"),
        "insert alone": merge(source(("m", "new")), RECORD, ADD),
        "update, then delete": merge(
            changes, RECORD, f"WHEN MATCHED AND s.v <> 'deleted' THEN UPDATE SET * WHEN MATCHED THEN DELETE {ADD}"
        ),
        "good by names of its own": merge(
            "SELECT 'k' AS known, 'a' AS folder, 'w' AS v, 2L AS ts",
            "t.id = s.known AND t.p = s.folder",
            f"{UPDATE.replace('*', 'id = s.known, p = s.folder, v = s.v, ts = s.ts')} "
            f"{ADD.replace('*', '(id, p, v, ts) VALUES (s.known, s.folder, s.v, s.ts)')}",
        ),
        "good from itself": merge(
            "SELECT id, 'self' AS v, ts + 1 AS ts, p FROM t WHERE id = 'k'", RECORD, f"{UPDATE} {ADD}"
        ),
        "from itself by both sides": merge(
            "SELECT id, 'both' AS v, ts + 10 AS ts, p FROM t",
            RECORD,
            "WHEN MATCHED AND t.id = 'u' AND t.v <> s.v AND s.ts = t.ts + 10 THEN UPDATE SET *",
        ),
    }


def matches() -> Mapping[str, Callable[[], None]]:
    """Statements for a table without ordering columns, before its first commit and after."""
    update_and_insert = merge(source(("u", "x"), ("n", "new")), RECORD, f"{UPDATE} {ADD}")

    def first() -> None:
        spark.sql(f"CREATE TABLE t (id string, v string, ts long, p string) USING hudi LOCATION '{current.table_path}'")
        update_and_insert()

    return {
        "first": first,
        "good by upsert": lambda: save(rows(("d", "a", "v", 1), ("u", "a", "v", 1), ("k", "a", "v", 1)), UPSERT),
        "insert alone": merge(source(("u", "x"), ("n", "new")), RECORD, ADD),
        "delete alone": merge(source(("d", "x")), RECORD, "WHEN MATCHED THEN DELETE"),
        "update and insert": update_and_insert,
    }


def buckets() -> Mapping[str, Callable[[], None]]:
    """Statements for a MergeOnRead table with a bucket index. `n`, `m` and `o` are new keys of a
    bucket that has a file.
    """
    changes = source(("u", "w"), ("d", "deleted"), ("n", "new"), ("o", "deleted"))
    kept = "s.v <> 'deleted'"
    return {
        "good by upsert": lambda: save(rows(("d", "a", "v", 1), ("u", "a", "v", 1), ("k", "a", "v", 1)), UPSERT),
        "insert alone": merge(source(("u", "x"), ("m", "new")), RECORD, ADD),
        "update alone": merge(source(("m", "new")), RECORD, UPDATE),
        "delete and insert": merge(source(("m", "new")), RECORD, f"WHEN MATCHED AND s.v = 'deleted' THEN DELETE {ADD}"),
        "other conditions": merge(
            source(("m", "new")), RECORD, f"{UPDATE.replace('MATCHED', f'MATCHED AND {kept}')} {ADD}"
        ),
        "other values": merge(
            source(("m", "new")),
            RECORD,
            f"{UPDATE} {ADD.replace('*', '(id, p, v, ts) VALUES (s.id, s.p, s.id, s.ts)')}",
        ),
        "ordering of another type": merge("SELECT 'u' AS id, 'a' AS p, 5 AS ts", RECORD, "WHEN MATCHED THEN DELETE"),
        "good by delete alone": merge(source(("k", "x"), ("m", "new")), RECORD, "WHEN MATCHED THEN DELETE"),
        "good by update and insert": merge(source(("u", "x"), ("l", "new")), RECORD, f"{UPDATE} {ADD}"),
        "good by changes": merge(
            changes,
            RECORD,
            f"{UPDATE.replace('MATCHED', f'MATCHED AND {kept}')} WHEN MATCHED THEN DELETE "
            f"{ADD.replace('MATCHED', f'MATCHED AND {kept}')}",
        ),
    }


def names() -> Mapping[str, Callable[[], None]]:
    """Inserts that name the columns."""
    right = "SELECT 'a' AS p, 'w' AS v, 2L AS ts, 'n' AS id"

    def another() -> None:
        spark.createDataFrame([("k", "v")], "id string, v string").write.format("parquet").saveAsTable("another")
        spark.sql("INSERT INTO another BY NAME SELECT 'w' AS v, 'n' AS id")

    return {
        "good by upsert": lambda: save(rows(("k", "a", "v", 1)), UPSERT),
        "by name": lambda: sql(f"INSERT INTO t BY NAME {right}"),
        "by name after a query": lambda: sql(f"WITH s AS ({right}) INSERT INTO t BY NAME SELECT * FROM s"),
        "by path and name": lambda: sql(f"INSERT INTO hudi.`{current.table_path}` BY NAME {right}"),
        "by a wrong name": lambda: sql("INSERT INTO t BY NAME SELECT 'w' AS w, 'n' AS id, 2L AS ts, 'a' AS p"),
        "ordering of another type": merge("SELECT 'k' AS id, 'a' AS p, 5 AS ts", RECORD, "WHEN MATCHED THEN DELETE"),
        "delete without p": lambda: save(rows(("k", "a", "v", 9)).drop("p"), {OPERATION: "delete"}),
        "upsert without p": lambda: save(rows(("k", "a", "x", 9)).drop("p"), UPSERT),
        "upsert without id": lambda: save(rows(("k", "a", "x", 9)).drop("id"), UPSERT),
        "upsert without ID": lambda: save(rows(("k", "a", "x", 9)).withColumnRenamed("id", "ID"), UPSERT),
        "key of the meta column": lambda: save(
            spark.read.format("hudi").load(current.table_path).withColumn("id", lit("other")),
            {**UPSERT, "_hoodie.spark.sql.writes.prepped": "true"},
        ),
        "good by columns": lambda: sql(f"INSERT INTO t (p, v, ts, id) {right}"),
        "good by name into another table": another,
        "good insert of a known record": lambda: sql("INSERT INTO t (id, p, v, ts) VALUES ('k', 'a', 'x', 3)"),
        "good insert of one record twice": lambda: sql(
            "INSERT INTO t (id, p, v, ts) VALUES ('m', 'a', 'late', 4), ('m', 'a', 'first', 1)"
        ),
        "good insert of a query": lambda: sql("INSERT INTO t SELECT id, p, concat(v, '!') AS v, ts + 1 AS ts FROM t"),
    }


def folders() -> Mapping[str, Callable[[], None]]:
    """Values that make more folders than there are partition columns (`p` and `v`)."""
    found: dict[str, Callable[[], None]] = {}
    for name, options in (("upsert", UPSERT), ("bulk-insert", BULK)):
        found[f"good by {name}"] = lambda name=name, options=options: save(rows((name, "a", "v", 1)), options)
        found[f"more folders by {name}"] = lambda name=name, options=options: save(
            rows((f"folders by {name}", "b/c", "v", 1)), options
        )
    found["more folders by INSERT"] = lambda: sql("INSERT INTO t (id, ts, p, v) VALUES ('n4', 1, 'a', 'b/c')")
    return found


def beside() -> Mapping[str, Callable[[], None]]:
    """Ways to put something other than rows into the table's folder."""
    made = Path(sys.argv[2]).parent / "beside"
    made.mkdir()
    (made / "one.json").write_text('{"x": 1}\n')

    def stream(checkpoint: str) -> None:
        query = (
            spark.readStream.schema("x int")
            # local files: the input of a stream, and a file to copy; the table is on S3
            .json(f"file://{made}")
            .writeStream.foreachBatch(lambda frame, _: frame.count())
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def copy() -> None:
        named = spark._jvm.org.apache.hadoop.fs.Path
        target = named(current.table_path)
        target.getFileSystem(spark._jsc.hadoopConfiguration()).copyFromLocalFile(
            # local files: the input of a stream, and a file to copy; the table is on S3
            named(f"file://{made}/one.json"),
            target,
        )

    return {
        "good by upsert": lambda: save(rows(("upsert", "a", "v", 1)), UPSERT),
        "good by a checkpoint elsewhere": lambda: stream(f"{current.table_path}-checkpoint"),
        "checkpoint beside the partitions": lambda: stream(f"{current.table_path}/_checkpoint"),
        "checkpoint in a partition": lambda: stream(f"{current.table_path}/a/_checkpoint"),
        "copy to the root": copy,
    }


KINDS: Mapping[str, Callable[[], Mapping[str, Callable[[], None]]]] = {
    one.__name__: one for one in (nulls, unordered, merges, matches, buckets, names, partitions, folders, beside)
}


def main(kind: str, results: str) -> None:
    """Try each way."""
    told = {}
    for way, write in KINDS[kind]().items():
        try:
            write()
            told[way] = ""
        except Exception as error:
            causes = java_causes(error)
            told[way] = f"{classify_causes(causes).value}: {describe_causes(causes)}" if causes else str(error)
        print(f"WAY {way}: {told[way][:600]}", flush=True)
    with open(results, "w", encoding="utf-8") as file:
        json.dump(told, file)
    spark.stop()  # as most programs do


main(*sys.argv[1:])
