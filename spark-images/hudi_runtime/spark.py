"""Start of the Spark session and what may be asked of its JVM process.

Configuration comes from `SPARK_CONF_DIR/spark-defaults.conf` and `HUDI_CONF_DIR/hudi-defaults.conf`, both rendered by the operator;
nothing that safety depends on is set here.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession


def start(name: str) -> SparkSession:
    """Start the session of this process. Executors reach the driver by the pod's address, which only the pod knows."""
    builder = SparkSession.builder.appName(name)
    address = os.environ.get("POD_IP")
    return (builder.config("spark.driver.host", address) if address else builder).getOrCreate()


def stop(*, wait_seconds: float) -> None:
    """End the session, so that executors end in order and an event log is completed; a driver that has finished does not wait longer for it."""

    def end() -> None:
        context: Any = SparkContext._active_spark_context  # not the active session: that one belongs to a thread
        if context is not None:
            with contextlib.suppress(Exception):  # a JVM that is gone needs no stop
                context.stop()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    thread.join(wait_seconds)


def jvm_exit_code(*, wait_seconds: float = 0.0) -> int | None:
    """Exit code of the JVM, waiting at most `wait_seconds` for it; None while it runs. A halt by the Java session is 15 or 16."""
    gateway: Any = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if process is None:
        return None
    try:
        return int(process.wait(timeout=wait_seconds))
    except subprocess.TimeoutExpired:
        return None


def job_group(spark: SparkSession, name: str) -> None:
    """Put the following Spark jobs of this thread in a group that can be cancelled."""
    spark.sparkContext.setJobGroup(name, name, interruptOnCancel=True)


def cancel_group(spark: SparkSession, name: str) -> None:
    """Stop the Spark jobs of a group; executors that are lost at that moment may go on writing (F4)."""
    spark.sparkContext.cancelJobGroup(name)
