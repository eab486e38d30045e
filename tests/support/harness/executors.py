"""Executors in processes of their own, for a writer or an agent of the hudi tier."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.harness.local import CLASS_PATH, JAVA_OPTIONS, Process
from tests.support.harness.lost_executor import EXECUTOR

EXECUTORS = {
    "spark.master": "local-cluster[1,1,512]",
    # Spark reads keys from files on Kubernetes alone.
    "spark.authenticate.secret": "of-tests",
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    "spark.executor.extraClassPath": CLASS_PATH,
}


def executor_of(process: Process) -> int:
    """Process id of its executor, which works below its folder or was started with paths in it."""
    for found in Path("/proc").iterdir():
        if found.name.isdigit():
            try:
                mine = str(process.folder) in (found / "cmdline").read_bytes().decode() or os.readlink(
                    found / "cwd"
                ).startswith(str(process.folder))
                if mine and EXECUTOR in (found / "cmdline").read_bytes():
                    return int(found.name)
            except OSError:
                continue
    raise AssertionError("no executor process")
