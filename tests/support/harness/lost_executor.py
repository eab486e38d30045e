"""Run by test_lost_executor.py: a Spark driver with one executor process, which is killed.

Prints what the runtime thinks before and after. Its argument is the class path.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from hudi_runtime.process import spark as sp

EXECUTOR = b"CoarseGrainedExecutorBackend"
QUEUE = "hudi-operator"
SLOW_SECONDS = 5.0
"""For each event: longer than anybody waits for them."""


def executors() -> list[int]:
    """Executor processes among the descendants of this process."""
    parents: dict[int, int] = {}
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            parents[int(process.name)] = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if EXECUTOR in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return [one for one in found if descends(one, parents)]


def descends(process: int, parents: dict[int, int]) -> bool:
    """Whether this process is an ancestor of that one."""
    while process > 1:
        if process == os.getpid():
            return True
        process = parents.get(process, 0)
    return False


class SlowListener:
    """A listener of a program that writes each event somewhere."""

    seconds = 0.0

    def __getattr__(self, name: str) -> Callable[[object], None]:
        if not name.startswith("on"):
            raise AttributeError(name)
        return lambda _event: time.sleep(self.seconds)

    class Java:
        """For py4j."""

        implements = ("org.apache.spark.scheduler.SparkListenerInterface",)


def _start(class_path: str, plugins: str) -> SparkSession:
    return (
        SparkSession.builder.master("local-cluster[1,1,512]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.driver.extraClassPath", class_path)
        .config("spark.executor.extraClassPath", class_path)
        .config("spark.plugins", plugins)
        .getOrCreate()
    )


def _work(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10


def _lost_within(spark: SparkSession, seconds: float, *, wanted: bool) -> bool:
    end = time.monotonic() + seconds
    while sp.lost_executors(spark) != wanted and time.monotonic() < end:
        time.sleep(0.1)
    return sp.lost_executors(spark)


def main() -> None:
    """One job after the other, and one kill."""
    spark = _start(sys.argv[1], "")
    _work(spark)
    print("nobody counts:", sp.lost_executors(spark), flush=True)
    spark.stop()
    spark = _start(sys.argv[1], "io.hudioperator.HudiOperatorPlugin")
    context: Any = spark.sparkContext
    jvm, bus = context._jvm, context._jsc.sc().listenerBus()
    ensure_callback_server_started(SparkContext._gateway)
    listener = SlowListener()
    bus.addToSharedQueue(listener)
    listener.seconds = SLOW_SECONDS
    _work(spark)
    recomputed = jvm.io.hudioperator.session.LostExecutors.recomputed()
    print("beside a slow listener:", sp.lost_executors(spark), recomputed, flush=True)
    print("queue:", bus.getQueueCapacity(QUEUE).get(), flush=True)
    bus.addToQueue(listener, QUEUE)
    _work(spark)
    print("late events:", sp.lost_executors(spark), flush=True)
    listener.seconds = 0.0
    print("all is heard:", _lost_within(spark, 60, wanted=False), flush=True)
    for process in executors():
        os.kill(process, signal.SIGKILL)
    print("killed:", _lost_within(spark, 60, wanted=True), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
