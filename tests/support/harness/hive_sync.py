"""Runs of the agent's synchronization with a Hive Metastore, without an agent and writers of ours:
`python -m tests.support.harness.hive_sync` takes a folder, a metastore's address and steps as JSON,
and prints what each step returned.

A step is `write` (rows and options of Hudi), `sync` and `drop` (fields of an assignment, and of its
catalog; `endpoint`: of Glue, in place of the metastore; they return what was left out or
stays, or reason and message), `partitions` (those that the metastore has of a table, each with its
folder), `owner` (uid in an entry of the metastore; None: there is no entry) or `credentials` (those
that S3A finds for a path).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
from pyspark.sql import SparkSession

from hudi_contract.assignment import AssignmentRecord, CatalogOrder
from hudi_runtime.catalog import glue
from hudi_runtime.catalog.glue import Glue
from hudi_runtime.catalog.hive import HiveMetastore
from hudi_runtime.catalog.options import OWNER
from hudi_runtime.catalog.outcome import NotSynced
from tests.support.harness.archived_table import OPTIONS
from tests.support.harness.local import CLASS_PATH, JAVA_OPTIONS, PLAIN_SPARK

COLUMNS = "id int, p string, q string, ts long"


class Steps:
    """The steps, on one table of local files."""

    def __init__(self, folder: Path, uri: str) -> None:
        settings = {
            **PLAIN_SPARK,
            "spark.driver.extraClassPath": CLASS_PATH,
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.hadoop.hive.metastore.uris": uri,
            "spark.hadoop.fs.s3a.bucket.lake.access.key": "AKIDLAKE",
            "spark.hadoop.fs.s3a.bucket.lake.secret.key": "secret-of-the-lake",
        }
        builder = SparkSession.builder.master("local[1]")
        if uri:
            builder = builder.enableHiveSupport()
        for key, value in settings.items():
            builder = builder.config(key, value)
        self._spark: Any = builder.getOrCreate()
        self._spark.sparkContext.setLogLevel("ERROR")
        self._folder = folder
        self._uri = uri

    def write(self, table: str, rows: list[list[Any]], columns: str = COLUMNS, **options: str) -> str:
        """A commit."""
        self._spark.conf.set("spark.sql.caseSensitive", "true")
        frame = self._spark.createDataFrame([tuple(row) for row in rows], columns)
        more = {"hoodie.table.name": table, "hoodie.clean.automatic": "false", **options}
        frame.write.format("hudi").options(**{**OPTIONS, **more}).mode("append").save(self._path(table))
        return ""

    def sync(self, table: str, *, everything: bool, **fields: Any) -> Any:
        """Run `Catalog.sync`."""
        return self._run(table, lambda catalog: list(catalog.sync(everything=everything)), **fields)

    def drop(self, table: str, **fields: Any) -> Any:
        """Run `Catalog.drop`."""
        return self._run(table, lambda catalog: catalog.drop(), **fields)

    def _run(
        self,
        table: str,
        run: Callable[[Any], Any],
        *,
        seconds: int = 120,
        name: str = "",
        uid: str = "u",
        endpoint: str = "",
        **fields: Any,
    ) -> Any:
        order = AssignmentRecord(
            id=table,
            path=self._path(table),
            table=f"lake/{table}",
            name=table,
            type=fields.get("type", "COPY_ON_WRITE"),
            record_key_fields=("id",),
            hive_style_partitioning=bool(fields.get("named")),
            partition_fields=tuple(fields["by"]),
        )
        wanted = CatalogOrder(
            uris=() if endpoint else (self._uri,),
            region="eu-central-1" if endpoint else "",
            database="default",
            table=name or table,
            timeout_seconds=seconds,
            uid=uid,
        )
        try:
            if endpoint:
                return run(Glue(self._spark, order, wanted, connect=lambda limit: self._glue(endpoint, limit)))
            return run(HiveMetastore(self._spark, order, wanted))
        except NotSynced as error:
            return {"reason": error.reason, "message": str(error)}

    def credentials(self, path: str) -> dict[str, str]:
        """Credentials with which a request to AWS would be signed."""
        return glue.credentials(self._spark, path)

    def _glue(self, endpoint: str, seconds: float) -> Any:
        session = boto3.session.Session(**glue.credentials(self._spark, "s3a://lake/tables"))
        return session.client("glue", region_name="eu-central-1", endpoint_url=endpoint)

    def owner(self, table: str) -> str | None:
        """The mark of an entry."""
        catalog = self._spark._jsparkSession.sharedState().externalCatalog().unwrapped()
        if not catalog.tableExists("default", table):
            return None
        properties = catalog.getTable("default", table).properties()
        return str(properties.apply(OWNER)) if properties.contains(OWNER) else ""

    def partitions(self, table: str) -> dict[str, str]:
        """Values, and folders below the table's."""
        catalog = self._spark._jsparkSession.sharedState().externalCatalog().unwrapped()
        jvm = self._spark._jvm
        found = catalog.listPartitions("default", table, jvm.scala.Option.empty())
        columns = catalog.getTable("default", table).partitionColumnNames().mkString(",")
        made = {}
        for at in range(int(found.size())):
            one = found.apply(at)
            values = [str(one.spec().apply(column)) for column in str(columns).split(",")]
            made[", ".join(values)] = str(one.location().getPath()).removeprefix(f"{self._folder}/").partition("/")[2]
        return made

    def _path(self, table: str) -> str:
        # local files: how values are taken from paths does not depend on the store
        return f"file://{self._folder}/{table}"


def main() -> None:
    job = json.loads(sys.stdin.read())
    steps = Steps(Path(job["folder"]), job["uri"])
    print(json.dumps([getattr(steps, step)(*given, **named) for step, given, named in job["steps"]]))


if __name__ == "__main__":
    main()
