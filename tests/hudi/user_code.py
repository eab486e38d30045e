"""User code of the tests: what a HudiWriter's `source.python` names."""

from __future__ import annotations

import time
from pathlib import Path

SCHEMA = "id int, p string, v string, ts long"


LIMIT = 1800.0
"""Seconds that a writer waits for a test; the test has its own, shorter limits."""


def _wait(gate):
    end = time.monotonic() + LIMIT
    while not Path(gate).exists():
        if time.monotonic() >= end:
            raise TimeoutError(f"nobody has opened {gate}")
        time.sleep(0.05)


def _pause(rows, gate):
    """In a Spark task: say that it runs, then wait until the test lets it go on."""
    Path(f"{gate}.reached").touch()
    _wait(gate)
    yield from rows


def batches(spark, context):
    """One DataFrame per batch of `arguments`: {"rows": [[id, p, v, ts], …], "schema": if it is another one, "gate": file that a task waits for,
    "after": file that is waited for before the batch is given, once everything before it is committed}."""
    for batch in context.arguments["batches"]:
        gate, after, schema = batch.get("gate"), batch.get("after"), batch.get("schema", SCHEMA)
        if after is not None:
            Path(f"{after}.reached").touch()
            _wait(after)
        rows = [tuple(row) for row in batch["rows"]]
        if gate is None:
            yield spark.createDataFrame(rows, schema)
        else:
            paused = spark.sparkContext.parallelize(rows, 1).mapPartitions(lambda part, gate=gate: _pause(part, gate))
            yield spark.createDataFrame(paused, schema)
