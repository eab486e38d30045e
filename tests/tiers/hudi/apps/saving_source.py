"""A python source that also saves rows by itself."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession

from hudi_runtime.api import Context


def saves(spark: SparkSession, context: Context) -> Iterator[DataFrame]:
    """A row for each value of the argument `ordering`, in a commit of its own; then no batch."""
    for number, ordering in enumerate(context.arguments["ordering"]):
        frame = spark.createDataFrame([(f"own-{number}", "a", "v", ordering)], "id string, p string, v string, ts long")
        options = {**context.table_options(), "hoodie.datasource.write.operation": "upsert"}
        frame.write.format("hudi").options(**options).mode("append").save(context.table_path)
    yield from ()
