"""A program that keeps what it has read while another writer changes it, and writes it later.

Arguments: results, gate.
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import describe_causes, java_causes

current = current_context()
spark = current.spark
results, gate = Path(sys.argv[1]), Path(sys.argv[2])
found: dict[str, str] = {}


def rows(number):
    return (
        spark.read.format("hudi")
        .load(current.table_path)
        .where(f"id = {number}")
        .selectExpr("id", "p", "cast(v AS int) + 1 AS v", "ts + 1 AS ts")
        .collect()
    )


def update(row):
    spark.sql(f"UPDATE counted SET v = '{row.v}', ts = {row.ts} WHERE id = {row.id}")


def save(row):
    frame = spark.createDataFrame([(row.id, row.p, str(row.v), row.ts)], "id int, p string, v string, ts long")
    options = {**current.table_options(), "hoodie.datasource.write.operation": "upsert"}
    frame.write.format("hudi").options(**options).mode("append").save(current.table_path)


def outcome(name, action):
    try:
        action()
        found[name] = "done"
    except Exception as error:
        found[name] = describe_causes(java_causes(error))[:400] or str(error)[:400]
    print("READS", name, found[name], flush=True)


spark.sql(f"CREATE TABLE counted USING hudi LOCATION '{current.table_path}'")
with ThreadPoolExecutor(1) as pool:
    mine, other = pool.submit(lambda: (*rows(1), *rows(2))).result()
Path(f"{gate}.reached").touch()
while not gate.exists():
    time.sleep(0.1)
rows(3)
outcome("rows of a pool", lambda: save(other))
outcome("rows of a pool, tried again", lambda: save(other))
outcome("UPDATE", lambda: update(mine))
outcome("UPDATE, tried again", lambda: update(mine))
(mine,) = rows(1)
outcome("UPDATE, read again", lambda: update(mine))
outcome(
    "UPDATE by itself",
    lambda: spark.sql("UPDATE counted SET v = cast(cast(v AS int) + 1 AS string), ts = ts + 1 WHERE id = 3"),
)
outcome(
    "read_optimized",
    lambda: (
        spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "read_optimized")
        .load(current.table_path)
        .collect()
    ),
)
spark.conf.set("hoodie.datasource.query.type", "read_optimized")
outcome("UPDATE with SET read_optimized", lambda: spark.sql("UPDATE counted SET v = 'old', ts = ts + 1 WHERE id = 3"))
spark.conf.unset("hoodie.datasource.query.type")
outcome(
    "skip_merge",
    lambda: (
        spark.read.format("hudi")
        .option("hoodie.datasource.merge.type", "skip_merge")
        .load(current.table_path)
        .collect()
    ),
)
spark.conf.set("hoodie.datasource.merge.type", "skip_merge")
outcome("UPDATE with SET skip_merge", lambda: spark.sql("UPDATE counted SET v = 'old', ts = ts + 1 WHERE id = 3"))
spark.conf.unset("hoodie.datasource.merge.type")
for setting in (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "hoodie.enable.data.skipping",
):
    spark.conf.set(setting, "true")
    outcome(
        f"UPDATE with SET {setting.removeprefix('spark.sql.files.').removeprefix('hoodie.enable.')}",
        lambda: spark.sql("UPDATE counted SET v = 'old', ts = ts + 1 WHERE id = 3"),
    )
    spark.conf.unset(setting)
landing = Path(f"{gate}-in")
landing.mkdir()
(landing / "one.json").write_text('{"id": 4, "p": "a", "v": "streamed", "ts": 1}\n')
# local files: the input of a stream and its checkpoint; the table is on S3
stream = (
    spark.readStream.schema("id int, p string, v string, ts long")
    .json(f"file://{landing}")
    .writeStream.format("hudi")
    .options(**current.table_options())
)
outcome(
    "writeStream",
    lambda: (
        stream.option("checkpointLocation", f"file://{gate}-checkpoint")
        .trigger(availableNow=True)
        .start(current.table_path)
    ),
)
results.write_text(json.dumps(found))
