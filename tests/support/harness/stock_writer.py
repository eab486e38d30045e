"""One writer with stock Hudi: `python -m tests.support.harness.stock_writer` does the upserts of
STOCK_JOB, one after another, and writes down how the last one ended.

Nothing of this project is loaded: Spark, Hudi's bundle and one of Hudi's own lock providers.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from pyspark.sql import SparkSession

SCHEMA = "id int, p string, v string, ts long"


def main() -> None:
    job = json.loads(os.environ["STOCK_JOB"])
    result = Path(job["result"])
    builder = SparkSession.builder.master("local[1]").appName(job["name"])
    for key, value in job["spark"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    try:
        for rows in [*job.get("before", []), job["rows"]]:
            frame = spark.createDataFrame([tuple(row) for row in rows], SCHEMA)
            frame.write.format("hudi").options(**job["options"]).mode("append").save(job["path"])
    except Exception as error:
        result.write_text(json.dumps({"acknowledged": False, "error": str(error).strip().splitlines()[0][:300]}))
        raise
    result.write_text(json.dumps({"acknowledged": True}))


if __name__ == "__main__":
    main()
