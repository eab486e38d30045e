"""The workload of a single writer with plain Hudi settings:
`python -m tests.campaigns.matrix.stock_writer` plays the batches that STOCK_JOB names.

Nothing of this project is loaded but the function that makes the batches.
"""

from __future__ import annotations

import json
import os
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

from pyspark.sql import SparkSession

from tests.support.harness.user_code import batches


def main() -> None:
    job = json.loads(os.environ["STOCK_JOB"])
    builder = SparkSession.builder.master("local[1]").appName(job["name"])
    for key, value in job["spark"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    # The ones that an earlier process has committed are made and left out.
    for frame in islice(batches(spark, SimpleNamespace(arguments={"batches": job["batches"]})), job["skip"], None):
        frame.write.format("hudi").options(**job["options"]).mode("append").save(job["path"])
    Path(job["result"]).write_text(json.dumps({"acknowledged": True}))


if __name__ == "__main__":
    main()
