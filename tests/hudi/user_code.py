"""User code of the tests: what a HudiWriter's `source.python` names."""

from __future__ import annotations

import time
from pathlib import Path

SCHEMA = "id int, p string, v string, ts long"


def _pause(rows, gate):
    """In a Spark task: say that it runs, then wait until the test lets it go on."""
    Path(f"{gate}.reached").touch()
    end = time.monotonic() + 120
    while not Path(gate).exists() and time.monotonic() < end:
        time.sleep(0.05)
    yield from rows


def batches(spark, context):
    """One DataFrame per batch of `arguments`: {"rows": [[id, p, v, ts], …], "gate": file that a task waits for}."""
    for batch in context.arguments["batches"]:
        gate = batch.get("gate")
        rows = [tuple(row) for row in batch["rows"]]
        if gate is None:
            yield spark.createDataFrame(rows, SCHEMA)
        else:
            paused = spark.sparkContext.parallelize(rows, 1).mapPartitions(lambda part, gate=gate: _pause(part, gate))
            yield spark.createDataFrame(paused, SCHEMA)


def hostile(spark, context):
    """Tries to write past the lock, by option and by SET; `arguments.way` says how."""
    way = context.arguments["way"]
    frame = spark.createDataFrame([(1, "a", "hostile", 99)], SCHEMA)
    settings = {
        "provider": {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"},
        "mode": {"hoodie.write.concurrency.mode": "SINGLE_WRITER", "hoodie.clean.failed.writes.policy": "EAGER"},
        "eager": {"hoodie.clean.failed.writes.policy": "EAGER"},
        "callback": {
            "hoodie.client.init.callback.classes": "",
            "hoodie.write.lock.conflict.resolution.strategy": "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy",
        },
    }[way.split("-")[0]]
    if way.endswith("-set"):
        for key, value in settings.items():
            spark.sql(f"SET {key}={value}")
        spark.sql(f"CREATE TABLE hostile USING hudi LOCATION '{context.table_path}'")
        spark.sql("UPDATE hostile SET v = 'hostile' WHERE id = 1")
    else:
        options = {**context.table_options(), "hoodie.datasource.write.operation": "upsert", **settings}
        frame.write.format("hudi").options(**options).mode("append").save(context.table_path)
    return frame
