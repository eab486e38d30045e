"""A program that deletes records in ways of its own, and notes what came of each: the error's
message, or nothing.

Argument: the file for the notes, JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import describe_causes, java_causes

current = current_context()
spark = current.spark
OPERATION = "hoodie.datasource.write.operation"
DROP = "hoodie.datasource.write.insert.drop.duplicates"
POLICY = "hoodie.datasource.insert.dup.policy"
notes: dict[str, str] = {}


def save(query: str, operation: str = "delete", **options: str) -> None:
    frame: DataFrame = spark.sql(query)
    more = {OPERATION: operation, **options}
    frame.write.format("hudi").options(**current.table_options()).options(**more).mode("append").save(
        current.table_path
    )


def within(setting: str, value: str, statement: str) -> None:
    """Run a statement with a setting of the session."""
    spark.conf.set(setting, value)
    try:
        spark.sql(statement)
    finally:
        spark.conf.unset(setting)


def note(name: str, way: Callable[[], object]) -> None:
    try:
        way()
        notes[name] = ""
    except Exception as error:
        causes = java_causes(error)
        notes[name] = describe_causes(causes) if causes else str(error)


big = 2**53
ids = [*range(10), big, big + 1]
rows = " UNION ALL ".join(f"SELECT {id}L AS id, CAST(NULL AS INT) AS p, 'x' AS v, 5L AS ts" for id in ids)
note("the first of all commits", lambda: save("SELECT 1L AS id, CAST(NULL AS INT) AS p"))
save(rows, "upsert")
spark.sql(f"CREATE TABLE t USING hudi LOCATION '{current.table_path}'")

note("a double", lambda: save(f"SELECT CAST({big} AS DOUBLE) AS id, CAST(NULL AS INT) AS p"))
note("a text", lambda: save("SELECT '01' AS id, CAST(NULL AS INT) AS p"))
note("a text as partition", lambda: save("SELECT 1L AS id, 'abc' AS p"))
note("an int", lambda: save("SELECT 1 AS id, CAST(NULL AS BIGINT) AS p"))
note("no type", lambda: save("SELECT 2L AS id, NULL AS p"))
note("null", lambda: save("SELECT CAST(NULL AS BIGINT) AS id, CAST(NULL AS INT) AS p"))
note("null among others", lambda: save("SELECT nullif(id, 9L) AS id, 7 AS p FROM range(8, 10)"))
spark.read.format("hudi").load(current.table_path).createOrReplaceTempView("own")
note("null of two sources", lambda: save("SELECT nullif(a.id, 0L) AS id, b.p FROM own a JOIN own b ON a.v = b.v"))
note("known rows dropped", lambda: save("SELECT 3L AS id, NULL AS p", **{DROP: "true"}))
note("known rows dropped by policy", lambda: save("SELECT 4L AS id, NULL AS p", **{POLICY: "drop"}))
note("known rows dropped by the session", lambda: within(DROP, "true", "DELETE FROM t WHERE id = 5"))
note("known rows dropped by its policy", lambda: within(POLICY, "drop", "DELETE FROM t WHERE id = 6"))
for operation in ("delete", "insert"):
    for statement in (
        "UPDATE t SET v = 'y' WHERE id = 9",
        "DELETE FROM t WHERE id = 9",
        "INSERT INTO t (id, v, ts, p) VALUES (9, 'y', 6, NULL)",
    ):
        name = f"{operation} in the session: {statement.split()[0]}"
        note(name, lambda: within(OPERATION, operation, statement))  # noqa: B023 - called at once
for setting, value in ((DROP, "true"), (POLICY, "drop")):
    note(f"UPDATE with {setting}", lambda: within(setting, value, "UPDATE t SET v = 'y' WHERE id = 9"))  # noqa: B023
read = spark.read.format("hudi").load(current.table_path).selectExpr("max(_hoodie_commit_time)").first()
assert read
spark.sql(f"CREATE TABLE old USING hudi TBLPROPERTIES ('as.of.instant'='{read[0]}') LOCATION '{current.table_path}'")
spark.conf.set("hoodie.datasource.read.begin.instanttime", read[0])
for statement in ("UPDATE {} SET v = 'y' WHERE id = 9", "DELETE FROM {} WHERE id = 9"):
    name, changes = statement.split()[0], statement.format("t")
    note(f"what changed alone: {name}", lambda: within("hoodie.datasource.query.type", "incremental", changes))  # noqa: B023 - called at once
    note(f"an old state: {name}", lambda: spark.sql(statement.format("old")))  # noqa: B023
spark.conf.unset("hoodie.datasource.read.begin.instanttime")
save("SELECT 8L AS id, CAST(NULL AS INT) AS p, 'x' AS v, 6L AS ts, nullif('new', '') AS added", "upsert")
note("a column that the catalog does not know", lambda: spark.sql("DELETE FROM t WHERE id = 8"))
Path(sys.argv[1]).write_text(json.dumps(notes))
