"""Spark SQL with a Hive Metastore as its catalog: `python -m tests.support.harness.hive_reader`
takes settings and statements as JSON, and prints the rows of each as JSON. `PARTITIONS name`: those
that the metastore has of a table.

Nothing of this project is loaded but the jars of the image.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

from tests.support.harness import class_archive
from tests.support.harness.local import JAVA_OPTIONS, PLAIN_SPARK


def main() -> None:
    job = json.loads(sys.stdin.read())
    builder = SparkSession.builder.master("local[1]").enableHiveSupport()
    settings = {
        **PLAIN_SPARK,
        "spark.driver.extraClassPath": ":".join(class_archive.CLASS_PATH),
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.sql.warehouse.dir": f"{job['folder']}/warehouse",
        **{f"spark.hadoop.{key}": value for key, value in job["settings"].items()},
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps([_rows(spark, text) for text in job["statements"]]))


def _rows(spark: Any, text: str) -> list[list[Any]]:
    word, _, name = text.partition(" ")
    if word != "PARTITIONS":
        return [list(row) for row in spark.sql(text).collect()]
    # For Hudi's tables SHOW PARTITIONS asks the table, not the metastore.
    catalog = spark._jsparkSession.sharedState().externalCatalog().unwrapped()
    found = str(catalog.listPartitionNames("default", name, spark._jvm.scala.Option.empty()).mkString("\n"))
    return [[line] for line in found.splitlines()]


if __name__ == "__main__":
    main()
