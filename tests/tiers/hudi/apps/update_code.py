"""User code that counts in the table itself: each batch adds one to the counters (column v)
of some records.
"""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql.functions import col

from hudi_runtime.api import Update

LIMIT = 600.0


def _once(gate):
    """At the first try say that the rows were read, and wait until the test lets it go on."""
    if gate is None or Path(f"{gate}.reached").exists():
        return
    Path(f"{gate}.reached").touch()
    end = time.monotonic() + LIMIT
    while not Path(gate).exists():
        if time.monotonic() >= end:
            raise TimeoutError(f"nobody has opened {gate}")
        time.sleep(0.05)


def _counted(rows, ids):
    chosen = rows.where(col("id").isin(ids))
    return chosen.selectExpr("id", "p", "cast(cast(v AS int) + 1 AS string) AS v", "ts + 1 AS ts")


def updates(spark, context):
    """`arguments`: {"batches": [{"ids": […], "gate": file, "serializable": bool}, …]}."""
    for batch in context.arguments["batches"]:

        def rows(snapshot, batch=batch):
            made = _counted(snapshot, batch["ids"])
            _once(batch.get("gate"))
            return made

        yield Update(rows, serializable=batch.get("serializable", False))


def limited(spark, context):
    """Updates whose function decides by rows that were collected before."""
    for batch in context.arguments["batches"]:
        table = spark.read.format("hudi").load(context.table_path)
        kept = [tuple(row) for row in table.where(col("id").isin(batch["ids"])).select("id", "p", "v", "ts").collect()]
        made = [(id, p, str(int(v) + 1), ts + 1) for id, p, v, ts in kept]
        _once(batch.get("gate"))

        def rows(snapshot, made=made):
            snapshot.count()
            return spark.createDataFrame(made, "id int, p string, v string, ts long")

        yield Update(rows)


def firsts(spark, context):
    """The first records of a table without commits: there is nothing to read yet."""

    def rows(snapshot):
        assert snapshot.columns == []
        return spark.createDataFrame([(9, "a", "0", 1)], "id int, p string, v string, ts long")

    yield Update(rows)


def frames(spark, context):
    """The same with plain frames."""
    for batch in context.arguments["batches"]:
        made = _counted(context.read_table(), batch["ids"])
        _once(batch.get("gate"))
        yield made


def unseen(spark, context):
    """The same, read in a way that the runtime does not see."""
    for batch in context.arguments["batches"]:
        made = _counted(spark.read.format("hudi").load(context.table_path), batch["ids"])
        _once(batch.get("gate"))
        yield made


def collected(spark, context):
    """Rows with v = '0' in variables of the function, and new ones with `new` as key."""
    for batch in context.arguments["batches"]:
        table = spark.read.format("hudi").load(context.table_path)
        found = [tuple(row) for row in table.where("v = '0'").select("id", "p", "v", "ts").collect()]
        _once(batch.get("gate"))
        if "new" in batch:
            found = [(batch["new"], "a", str(len(found)), 1)]
        yield spark.createDataFrame(found, "id int, p string, v string, ts long")
