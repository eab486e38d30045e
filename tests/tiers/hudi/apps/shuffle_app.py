"""A program that moves rows between its executors and onto their disks, each with a text that it
was given backwards; it waits while the files are there, and then writes the rows to its table.

The text itself is in no argument and no call of Python's: it exists in the JVMs alone.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from pyspark import StorageLevel

from hudi_runtime.api import current_context

backwards, gate = sys.argv[1:]
current = current_context()
rows = current.spark.range(0, 4000, 1, 4).selectExpr(
    "CAST(id AS INT) AS id",
    "'a' AS p",
    f"concat(reverse('{backwards}'), CAST(id AS STRING)) AS v",
    "CAST(1 AS LONG) AS ts",
)
moved = rows.repartition(3, "id").persist(StorageLevel.DISK_ONLY)
assert moved.count() == 4000
Path(f"{gate}.reached").touch()
while not Path(gate).exists():
    time.sleep(0.1)
few = moved.where("id < 20")
few.write.format("hudi").options(**current.table_options()).mode("append").save(current.table_path)
