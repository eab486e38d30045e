"""Start and end of the Spark session, and the state of its JVM process.

Configuration comes from `SPARK_CONF_DIR/spark-defaults.conf` and
`HUDI_CONF_DIR/hudi-defaults.conf`, both rendered by the operator. Safety depends on no setting of
this module.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from hudi_runtime.process import class_archive


def start(name: str, *, program: bool = False) -> SparkSession:
    """Start the session of this process.

    It has what only the pod knows: its address, and the class archive of its image.

    `program`: user code may write rows by itself, so the files are checked (F212, F281).
    """
    os.environ["HUDI_OPERATOR_PROGRAM"] = str(program).lower()
    settings = class_archive.settings()
    # Executors reach the driver there.
    if address := os.environ.get("POD_IP"):
        settings["spark.driver.host"] = address
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    _report_unused_archive()
    return spark


def _report_unused_archive() -> None:
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)  # spark-submit, which the JVM has replaced
    if process is not None and (message := class_archive.unused(process.pid)):
        print(message, file=sys.stderr, flush=True)


def stop(*, wait_seconds: float) -> None:
    """End the session, so that executors end in order and an event log is completed.

    Waits at most `wait_seconds`.
    """

    def end() -> None:
        context: Any = SparkContext._active_spark_context  # not the active session: that one belongs to a thread
        if context is not None:
            with contextlib.suppress(Exception):  # a JVM that is gone needs no stop
                context.stop()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    thread.join(wait_seconds)


def jvm_exit_code(*, wait_seconds: float = 0.0) -> int | None:
    """Exit code of the JVM, waiting at most `wait_seconds` for it; None while it runs.

    A halt by the Java session is 15 or 16.
    """
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return None
    try:
        return int(process.wait(timeout=wait_seconds))
    except subprocess.TimeoutExpired:
        return None


def interruptible(spark: SparkSession) -> None:
    """Let tasks be interrupted when their jobs are cancelled.

    This concerns the jobs that this thread starts from now on.
    """
    spark.sparkContext.setLocalProperty("spark.job.interruptOnCancel", "true")


def cancel_jobs(spark: SparkSession) -> None:
    """Ask every Spark job of this driver to stop; a batch driver has no work except its write."""
    if spark.sparkContext._jsc is not None:
        spark.sparkContext.cancelAllJobs()


def await_idle(spark: SparkSession, seconds: float) -> bool:
    """Wait until no executor that the driver knows runs a task; False on timeout.

    Spark reports a cancelled job as ended while its tasks still run. Lost executors are not
    counted: see :func:`lost_executors`.
    """
    context: Any = spark.sparkContext
    end = time.monotonic() + seconds
    while context._jsc is not None:
        if not any(executor.numRunningTasks() for executor in context._jsc.sc().statusTracker().getExecutorInfos()):
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
    return True


def lost_executors(spark: SparkSession) -> bool:
    """Whether the driver has lost an executor since its start.

    A lost executor may still run and write until the end of its pod is proven (F4).
    """
    context: Any = spark.sparkContext
    if context._jsc is None:
        return True
    known = context._jsc.sc().statusStore().executorList(False)
    return any(not known.apply(index).isActive() for index in range(known.size()))
