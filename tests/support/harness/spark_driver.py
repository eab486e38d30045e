"""Run by test_executor_pods.py: a Spark driver with the settings of a file, and one shuffle.

Prints the job's result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    """One job."""
    builder = SparkSession.builder
    for name, value in json.loads(Path(sys.argv[1]).read_text()).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    found = spark.range(1000).selectExpr("id % 7 AS k").groupBy("k").count().orderBy("k").collect()
    print("counts", [row["count"] for row in found], flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
