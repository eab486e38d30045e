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

ROWS, PARTS = 4000, 8


def _kill(spark, marker, stages):
    """Kill one executor when so many stages of `PARTS` tasks have ended: what it holds of the
    batch's rows has to be computed anew.
    """
    executors = importlib.import_module("lost_executor").executors  # it lies beside this file
    ended = set()
    tracker = spark.sparkContext.statusTracker()
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for job in tracker.getActiveJobsIds():
            found = [tracker.getStageInfo(stage) for stage in getattr(tracker.getJobInfo(job), "stageIds", ())]
            ended |= {
                stage.stageId
                for stage in found
                if stage and stage.numTasks == PARTS and stage.numCompletedTasks == PARTS
            }
            if len(ended) >= stages:
                os.kill(executors()[0], signal.SIGKILL)
                Path(marker).touch()
                return
        time.sleep(0.01)


def keys(spark, context):
    """One batch of `ROWS` rows.

    `arguments`: `marker`, a file that says that an executor was killed (with it nobody is killed
    any more); `stages`, after how many.
    """
    marker = context.arguments["marker"]
    key = udf(lambda: str(uuid.uuid4())).asNondeterministic()
    numbers = spark.range(0, ROWS, 1, PARTS).selectExpr("id AS number")
    frame = numbers.withColumn("id", key()).selectExpr("id", "'a' AS p", "cast(number AS string) AS v", "1L AS ts")
    if not Path(marker).exists():
        threading.Thread(target=_kill, args=(spark, marker, context.arguments["stages"]), daemon=True).start()
    yield frame
