"""Run by test_lost_executor.py: a Spark driver with one executor process, which is killed.

Prints what the runtime thinks before and after.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pyspark.sql import SparkSession

from hudi_runtime.process import spark as sp

EXECUTOR = b"CoarseGrainedExecutorBackend"


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


def main() -> None:
    """One job, one kill."""
    spark = (
        SparkSession.builder.master("local-cluster[1,1,512]")
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .getOrCreate()
    )
    assert spark.range(10).count() == 10
    print("before", sp.lost_executors(spark), flush=True)
    for process in executors():
        os.kill(process, signal.SIGKILL)
    end = time.monotonic() + 60
    while not sp.lost_executors(spark) and time.monotonic() < end:
        time.sleep(0.1)
    print("after", sp.lost_executors(spark), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
