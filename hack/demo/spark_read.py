"""Reads the table with Spark, in a process of its own: `python -m demo.spark_read ENDPOINT TABLE OUTPUT` (credentials: AWS_*).

Writes `snapshot` and `incremental` (parquet, Hudi's own columns left out) and `commits.json`: what each completed instant's metadata says.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def session(endpoint: str) -> SparkSession:
    cache = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))
    jars = ":".join(str(path) for path in sorted((cache / "jars").glob("*.jar")))
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.extraClassPath": jars,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
        "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
        "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        "spark.hadoop.fs.s3a.endpoint": endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.aws.credentials.provider": "com.amazonaws.auth.EnvironmentVariableCredentialsProvider",
    }
    builder = SparkSession.builder.master("local[2]").appName("demo-reader")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def commits(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    """Completed commits in order of completion: instant, completion time, extra metadata, file groups, records."""
    jvm: Any = spark.sparkContext._jvm
    configuration = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark.sparkContext._jsc.hadoopConfiguration())
    client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(configuration).setBasePath(path).build()
    timeline = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
    found = []
    for instant in timeline.getInstants():
        metadata = timeline.readCommitMetadata(instant)
        stats = list(metadata.getWriteStats())
        found.append(
            {
                "instant": instant.requestedTime(),
                "completed": instant.getCompletionTime(),
                "extra": {str(entry.getKey()): str(entry.getValue()) for entry in metadata.getExtraMetadata().entrySet() if entry.getKey() != "schema"},
                "fileGroups": [f"{stat.getPartitionPath()}/{stat.getFileId()}" for stat in stats],
                "records": sum(int(stat.getNumWrites()) for stat in stats),
            }
        )
    return sorted(found, key=lambda commit: str(commit["completed"]))


def main(endpoint: str, table: str, output: Path) -> None:
    spark = session(endpoint)
    spark.sparkContext.setLogLevel("ERROR")
    path = f"s3a://{table}"
    output.mkdir(parents=True, exist_ok=True)
    (output / "commits.json").write_text(json.dumps(commits(spark, path), indent=1))
    reads = {
        "snapshot": spark.read.format("hudi").load(path),
        # By completion time, from the beginning: what a consumer gets that has never read before.
        "incremental": spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", "000")
        .load(path),
    }
    for name, frame in reads.items():
        columns = [column for column in frame.columns if not column.startswith("_hoodie_")]
        frame.select(columns).write.mode("overwrite").parquet(f"file://{output}/{name}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve())
