"""A list-append transaction with stock Hudi: `python -m tests.campaigns.history.stock_writer` reads
list 1, waits for STOCK_JOB's `go`, and writes it with its mark.

Nothing of this project is loaded: Spark, Hudi's bundle, plain settings.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from pyspark.sql import SparkSession

LIMIT = 600.0


def main() -> None:
    job = json.loads(os.environ["STOCK_JOB"])
    builder = SparkSession.builder.master("local[1]").appName(job["name"])
    for key, value in job["spark"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    (row,) = spark.read.format("hudi").load(job["path"]).where("id = 1").select("id", "p", "v", "ts").collect()
    left = f"{row.v} {job['mark']}"
    Path(job["notes"]).write_text(
        json.dumps({"mark": job["mark"], "step": job["mark"], "read": {1: row.v}, "write": {1: left}}) + "\n"
    )
    end = time.monotonic() + LIMIT
    while not Path(job["go"]).exists() and time.monotonic() < end:
        time.sleep(0.05)
    frame = spark.createDataFrame([(row.id, row.p, left, row.ts + 1)], "id int, p string, v string, ts long")
    frame.write.format("hudi").options(**job["options"]).mode("append").save(job["path"])
    Path(job["result"]).write_text(json.dumps({"acknowledged": True}))


if __name__ == "__main__":
    main()
