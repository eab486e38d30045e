"""A program that writes rows which a table cannot hold, by each of Hudi's ways to write.

One way after the other, each with a key of its own. Arguments: `nulls`, `merges`,
`partitions`, `folders` or `beside`, and the file for what came of each.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame

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
    found["null by MERGE of a new record"] = lambda: sql(
        "MERGE INTO t USING (SELECT 'n2' AS id, 'v' AS v, CAST(NULL AS bigint) AS ts, 'a' AS p) s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT *"
    )
    found["null by MERGE of a known record"] = lambda: sql(
        "MERGE INTO t USING (SELECT 'insert' AS id, 'w' AS v, CAST(NULL AS bigint) AS ts, 'a' AS p) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    merge = (
        "MERGE INTO t USING (SELECT 'bulk-insert' AS id, 'w' AS v, 2L AS ts, 'a' AS p) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET "
    )
    found["MERGE of two columns"] = lambda: sql(f"{merge} v = s.v, ts = s.ts")
    found["good by MERGE of all columns"] = lambda: sql(f"{merge} *")
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


def merges() -> Mapping[str, Callable[[], None]]:
    """Statements that Hudi does not execute as they say, and their alternatives."""
    source = (
        "(SELECT 'd' AS id, 'deleted' AS v, 2L AS ts, 'a' AS p UNION ALL SELECT 'u', 'w', 2L, 'a' "
        "UNION ALL SELECT 'n', 'new', 2L, 'a')"
    )

    def merge(on: str, clauses: str) -> Callable[[], None]:
        return lambda: sql(f"MERGE INTO t USING {source} s ON {on} {clauses}")

    update, key = "WHEN MATCHED THEN UPDATE SET *", "t.id = s.id"
    return {
        "good by upsert": lambda: save(rows(("d", "a", "v", 1), ("u", "a", "v", 1), ("k", "a", "v", 1)), UPSERT),
        "not in the source": merge(key, f"{update} WHEN NOT MATCHED BY SOURCE THEN DELETE"),
        "delete, then update": merge(key, f"WHEN MATCHED AND s.v = 'deleted' THEN DELETE {update}"),
        "on more than the key": merge(f"{key} AND t.v = 'x'", update),
        "on another column": merge("t.v = s.v", update),
        "good by update, then delete": merge(
            f"{key} AND t.p = s.p",
            "WHEN MATCHED AND s.v <> 'deleted' THEN UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN "
            "INSERT *",
        ),
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


def main(kind: str, results: str) -> None:
    """Try each way."""
    told = {}
    kinds = {"nulls": nulls, "merges": merges, "partitions": partitions, "folders": folders, "beside": beside}
    for way, write in kinds[kind]().items():
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
