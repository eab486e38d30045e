"""A program that writes by itself, a row of the partition that its argument names."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from hudi_runtime.api import current_context

spark = SparkSession.builder.getOrCreate()
frame = spark.createDataFrame(
    [(0, "a", "also good", 2), (9, sys.argv[1], "program", 2)], "id int, p string, v string, ts long"
)
context = current_context()
# Other operations look for the partition's files first, which fails by itself.
options = {**context.table_options(), **context.commit_metadata(), "hoodie.datasource.write.operation": "bulk_insert"}
frame.write.format("hudi").options(**options).mode("append").save(context.table_path)
