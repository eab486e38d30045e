"""User code of test_recomputed.py: rows with new keys each time that they are computed, and an
executor that is killed in the middle of the write.
"""

from __future__ import annotations

import importlib
import os
import signal
import threading
import time
import uuid
from pathlib import Path

from pyspark.sql.functions import udf

from hudi_runtime.process.spark import lost_executors

ROWS, PARTS = 4000, 8
WRITES = "SparkStreamingMetadataWriteHandler"
"""In the name of the stage whose tasks write the data files, one for each partition."""


def _kill(spark, marker):
    """Kill one executor when two to six of the tasks that write files have ended.

    The others need rows that the killed executor held. They are computed again, with other keys, so
    that some belong into files that are written already.
    """
    executors = importlib.import_module("lost_executor").executors  # it lies beside this file
    tracker = spark.sparkContext.statusTracker()
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for job in tracker.getActiveJobsIds():
            for number in getattr(tracker.getJobInfo(job), "stageIds", ()):
                stage = tracker.getStageInfo(number)
                if stage and WRITES in stage.name and 2 <= stage.numCompletedTasks < PARTS - 1:
                    os.kill(executors()[0], signal.SIGKILL)
                    Path(marker).touch()
                    return
        time.sleep(0.005)


def keys(spark, context):
    """One batch of `ROWS` rows, of which each one's key decides its partition, one of `PARTS`.

    `arguments`: `marker`, a file that says that an executor was killed (with it nobody is killed
    any more).
    """
    key = udf(lambda: str(uuid.uuid4())).asNondeterministic()
    numbers = spark.range(0, ROWS, 1, PARTS).selectExpr("id AS number").withColumn("id", key())
    yield _batch(spark, context, numbers, "conv(substring(id, 1, 1), 16, 10)")


def numbered(spark, context):
    """The same with the numbers of rows in the order in which a shuffle gives them."""
    numbers = spark.range(0, ROWS, 1, PARTS).selectExpr("id AS number").repartition(PARTS)
    yield _batch(spark, context, numbers.selectExpr("row_number() OVER (ORDER BY 1) AS id", "number"), "id")


def idle(spark, context):
    """The rows of `keys` from a source that gave none yet when an executor was lost."""
    _lose_one(spark, context)
    key = udf(lambda: str(uuid.uuid4())).asNondeterministic()
    numbers = spark.range(0, ROWS, 1, PARTS).selectExpr("id AS number").withColumn("id", key())
    yield _rows(numbers, "conv(substring(id, 1, 1), 16, 10)")


def idle_held(spark, context):
    """The same rows, which executors held as one of them was lost: a part has other keys now."""
    key = udf(lambda: str(uuid.uuid4())).asNondeterministic()
    numbers = spark.range(0, ROWS, 1, PARTS).selectExpr("id AS number").withColumn("id", key()).cache()
    numbers.count()
    _lose_one(spark, context)
    yield _rows(numbers, "conv(substring(id, 1, 1), 16, 10)")


def _lose_one(spark, context):
    """Kill an executor, and wait until the driver knows it."""
    marker = Path(context.arguments["marker"])
    if marker.exists():
        return
    spark.range(0, ROWS, 1, PARTS).count()
    before = lost_executors(spark)
    os.kill(importlib.import_module("lost_executor").executors()[0], signal.SIGKILL)
    end = time.monotonic() + 60
    while lost_executors(spark) == before:
        if time.monotonic() > end:
            raise TimeoutError("the driver has not noticed")
        time.sleep(0.1)
    marker.touch()


def _batch(spark, context, numbers, place):
    marker = context.arguments["marker"]
    if not Path(marker).exists():
        threading.Thread(target=_kill, args=(spark, marker), daemon=True).start()
    return _rows(numbers, place)


def _rows(numbers, place):
    partition = f"concat('p', cast({place} AS int) % {PARTS}) AS p"
    return numbers.selectExpr("cast(id AS string) AS id", partition, "cast(number AS string) AS v", "1L AS ts")
