"""Reads the table with Spark, in a separate process:
`python -m demo.spark_read ENDPOINT TABLE OUTPUT` (credentials: AWS_*).

Writes `audit.json`: the report of the audit, with the rows of OUTPUT/expected.parquet and the keys
of OUTPUT/keys.json if they exist; `commits.json`: the metadata of each completed commit of the
active timeline; and `archived.json`: of the others.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from hudi_runtime.audit import audit
from hudi_runtime.audit.command import SETTINGS, expected_file, hudi_rs_options, session
from hudi_runtime.audit.keys import from_etcdctl


def storage_options(endpoint: str) -> dict[str, str]:
    """The options of the HudiTable's spec.storage.options."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
    }


def jars() -> str:
    """Class path of the session: SPARK_READ_CLASS_PATH, or the jars of the image."""
    if given := os.environ.get("SPARK_READ_CLASS_PATH"):
        return given
    cache = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))
    return ":".join(str(path) for path in sorted((cache / "jars").glob("*.jar")))


def commits(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    """Completed commits of the active timeline in order of completion: instant, completion time,
    operation, extra metadata, file groups, records.
    """
    return _commits(spark, _client(spark, path).getActiveTimeline())


def archived(spark: SparkSession, path: str) -> list[dict[str, Any]]:
    """The same of the commits that are in the archived timeline."""
    timeline = _client(spark, path).getArchivedTimeline()
    timeline.loadCompletedInstantDetailsInMemory()
    return _commits(spark, timeline)


def _client(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark.sparkContext._jvm
    configuration = jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(
        spark.sparkContext._jsc.hadoopConfiguration()
    )
    return (
        jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
        .setConf(configuration)
        .setBasePath(path)
        .build()
    )


def _commits(spark: SparkSession, timeline: Any) -> list[dict[str, Any]]:
    jvm: Any = spark.sparkContext._jvm
    found = []
    for instant in timeline.getCommitsTimeline().filterCompletedInstants().getInstants():
        metadata = jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(instant, timeline)
        stats = list(metadata.getWriteStats())
        found.append(
            {
                "instant": instant.requestedTime(),
                "completed": instant.getCompletionTime(),
                "operation": str(metadata.getOperationType()),
                "extra": {
                    str(entry.getKey()): str(entry.getValue())
                    for entry in metadata.getExtraMetadata().entrySet()
                    if entry.getKey() != "schema"
                },
                "fileGroups": [f"{stat.getPartitionPath()}/{stat.getFileId()}" for stat in stats],
                "records": sum(int(stat.getNumWrites()) for stat in stats),
            }
        )
    return sorted(found, key=lambda commit: str(commit["completed"]))


def main(endpoint: str, table: str, output: Path) -> None:
    options = storage_options(endpoint)
    # The optimizing compiler does not pay off in a process of one minute.
    java = (
        f"{SETTINGS['spark.driver.extraJavaOptions']} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
        f"{os.environ.get('SPARK_READ_JAVA_OPTIONS', '')}"
    )
    spark = session(
        {"spark.driver.extraClassPath": jars(), "spark.master": "local[2]", "spark.driver.extraJavaOptions": java},
        options,
    )
    path = f"s3a://{table}"
    expected, keys = output / "expected.parquet", output / "keys.json"
    report = audit(
        spark,
        path,
        expected=expected_file(str(expected)) if expected.exists() else None,
        keys=from_etcdctl(keys.read_text()) if keys.exists() else None,
        hudi_rs_options=hudi_rs_options(options),
    )
    (output / "audit.json").write_text(json.dumps(report.to_dict(), indent=1))
    (output / "audit.txt").write_text(report.text())
    (output / "commits.json").write_text(json.dumps(commits(spark, path), indent=1))
    (output / "archived.json").write_text(json.dumps(archived(spark, path), indent=1))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]).resolve())
