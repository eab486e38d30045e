"""Run by test_running_tasks.py: a Spark driver whose job is cancelled while its task goes on.

Prints what the runtime thinks before, in between and after. Its argument is the class path.
"""

from __future__ import annotations

import sys
import threading

from pyspark.sql import SparkSession

from hudi_runtime.process import spark as sp
from tests.support.harness.processes import until

TASK = "java_method('java.lang.Thread', 'sleep', 10000L + id)"
"""It sleeps for ten seconds, and nobody interrupts it."""


def sleeps(spark: SparkSession) -> bool:
    """Whether a task of this JVM is in `Thread.sleep`."""
    assert spark._jvm is not None
    for entry in spark._jvm.java.lang.Thread.getAllStackTraces().entrySet():
        frames = [str(frame) for frame in entry.getValue()]
        if "task launch worker" in entry.getKey().getName() and any("java.lang.Thread.sleep" in one for one in frames):
            return True
    return False


def main() -> None:
    """One job, cancelled."""
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.driver.extraClassPath", sys.argv[1]).getOrCreate()
    print("nothing runs yet:", sp.await_idle(spark, 10), repr(sp.running_tasks(spark)), flush=True)
    failed: list[Exception] = []

    def run() -> None:
        try:
            spark.sparkContext.setJobGroup("its own", "a job of a group")
            spark.range(0, 1, 1, 1).selectExpr(TASK).collect()
        except Exception as error:
            failed.append(error)

    job = threading.Thread(target=run)
    job.start()
    until("the task sleeps: before, it ends when its job is cancelled", lambda: sleeps(spark))
    print("idle for another group:", sp.await_idle(spark, 0, group="another"), flush=True)
    print("idle for its own group:", sp.await_idle(spark, 0, group="its own"), flush=True)
    sp.cancel_jobs(spark)
    job.join(60)
    print("the job is over:", bool(failed), flush=True)
    print("idle:", sp.await_idle(spark, 0.5), flush=True)
    print("told:", sp.running_tasks(spark), flush=True)
    print("at the end:", sp.await_idle(spark, 60), repr(sp.running_tasks(spark)), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
