"""A client of a Hive Metastore that says no name and has no credentials, not even of the tables'
storage: `python -m tests.support.harness.hive_stranger` takes the metastore's address and steps as
JSON, and prints what each step returned.

A step is `entry` (what the metastore has of a table; None: nothing), `set` (properties), `cut` (the
last column goes), `move` (another location), `take` (a partition goes), `drop` (the entry) or
`destroy` (the entry, by which the metastore is to delete the table's files: it is called the
metastore's own table first).

It is Hive's own client, from Spark's jars, without a Spark.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.java_gateway import launch_gateway

from hudi_runtime.catalog.options import OWNER

DATABASE = "default"


class Stranger:
    """The steps."""

    def __init__(self, uri: str) -> None:
        self._jvm: Any = launch_gateway().jvm
        conf = self._jvm.org.apache.hadoop.hive.conf.HiveConf()
        conf.set("hive.metastore.uris", uri)
        # Else it says the name of the user under which this process runs.
        conf.set("hive.metastore.execute.setugi", "false")
        self._client: Any = self._jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf)

    def entry(self, table: str) -> dict[str, Any] | None:
        if not self._client.tableExists(DATABASE, table):
            return None
        found = self._client.getTable(DATABASE, table)
        return {
            "location": str(found.getSd().getLocation()),
            "owner": found.getParameters().get(OWNER),
            "columns": [str(column.getName()) for column in found.getSd().getCols()],
            "partitions": sorted(map(str, self._client.listPartitionNames(DATABASE, table, -1))),
        }

    def set(self, table: str, **properties: str) -> None:
        found = self._client.getTable(DATABASE, table)
        for key, value in properties.items():
            found.getParameters().put(key, value)
        self._client.alter_table(DATABASE, table, found)

    def cut(self, table: str) -> None:
        found = self._client.getTable(DATABASE, table)
        columns = found.getSd().getCols()
        columns.remove(columns.get(columns.size() - 1))
        self._client.alter_table(DATABASE, table, found)

    def move(self, table: str, location: str) -> None:
        found = self._client.getTable(DATABASE, table)
        found.getSd().setLocation(location)
        self._client.alter_table(DATABASE, table, found)

    def take(self, table: str, *values: str) -> None:
        named = self._jvm.java.util.ArrayList()
        for value in values:
            named.add(value)
        self._client.dropPartition(DATABASE, table, named, False)

    def drop(self, table: str) -> None:
        self._client.dropTable(DATABASE, table, False, False)

    def destroy(self, table: str) -> None:
        found = self._client.getTable(DATABASE, table)
        found.setTableType("MANAGED_TABLE")
        found.getParameters().put("EXTERNAL", "FALSE")
        self._client.alter_table(DATABASE, table, found)
        self._client.dropTable(DATABASE, table, True, False)


def main() -> None:
    job = json.loads(sys.stdin.read())
    stranger = Stranger(job["uri"])
    print(json.dumps([getattr(stranger, step)(*given, **named) for step, given, named in job["steps"]]))


if __name__ == "__main__":
    main()
