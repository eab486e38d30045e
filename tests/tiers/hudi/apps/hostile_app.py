"""An application that tries to write past the lock, by option and by SET.

One JSON line per way: what came of it.

Arguments: the file for the results, and where the table's files lie on this machine.
"""

from __future__ import annotations

import json
import os
import sys

from hudi_runtime.api import current_context
from hudi_runtime.process.errors import classify_causes, describe_causes, java_causes

IN_PROCESS = "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
PREFER = "org.apache.hudi.client.transaction.PreferWriterConflictResolutionStrategy"
WAYS = {
    "provider": {"hoodie.write.lock.provider": IN_PROCESS},
    "mode": {"hoodie.write.concurrency.mode": "SINGLE_WRITER"},
    "eager": {"hoodie.clean.failed.writes.policy": "EAGER"},
    "bare": {
        "hoodie.write.concurrency.mode": "SINGLE_WRITER",
        "hoodie.clean.failed.writes.policy": "EAGER",
        "hoodie.write.lock.provider": IN_PROCESS,
    },
    "strategy": {
        "hoodie.write.lock.conflict.resolution.strategy": PREFER,
        "hoodie.write.lock.provider": IN_PROCESS,
        "hoodie.client.init.callback.classes": "",
    },
}

OF_THE_TABLE = {
    "no metadata table": {"hoodie.metadata.enable": "false"},
    "index": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "merger": {
        "hoodie.write.record.merge.custom.implementation.classes": "org.apache.hudi.common.model.HoodieAvroRecordMerger"
    },
    "merge mode": {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
    "payload": {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"},
    "record key": {"hoodie.datasource.write.recordkey.field": "v"},
    "partition": {"hoodie.datasource.write.partitionpath.field": "v"},
    "key generator": {
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
    },
    "ordering": {"hoodie.table.ordering.fields": "id"},
    "old name of ordering": {"hoodie.datasource.write.precombine.field": "id"},
    "table name": {"hoodie.table.name": "another"},
    "table type": {"hoodie.datasource.write.table.type": "MERGE_ON_READ"},
    "meta fields": {"hoodie.populate.meta.fields": "false"},
    "stored timestamps": {"hoodie.parquet.outputtimestamptype": "INT96"},
    "markers": {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED"},
    "services": {"hoodie.table.services.enabled": "true"},
    "cleaner": {"hoodie.clean.commits.retained": "1"},
    "old name of cleaner": {"hoodie.cleaner.commits.retained": "1"},
    "unknown": {"hoodie.brand.new": "1"},
}
"""What would make the write another one than the table's: refused before it has begun."""
BY_SET = ("no metadata table", "index", "cleaner")


def outcome(action):
    try:
        action()
    except Exception as error:
        causes = java_causes(error)
        return {
            "failed": True,
            "class": classify_causes(causes).value,
            "message": describe_causes(causes)[:1000] if causes else str(error)[:1000],
        }
    return {"failed": False}


def main(results: str, folder: str) -> None:
    current = current_context()
    spark = current.spark
    frame = spark.createDataFrame([(100, "c", "hostile", 99)], "id int, p string, v string, ts long")
    spark.sql(f"CREATE TABLE hostile USING hudi LOCATION '{current.table_path}'")

    def by_option(settings):
        options = {**current.table_options(), "hoodie.datasource.write.operation": "upsert", **settings}
        frame.write.format("hudi").options(**options).mode("append").save(current.table_path)

    def by_set(settings):
        for key, value in settings.items():
            if value:
                spark.sql(f"SET {key}={value}")
        spark.sql("UPDATE hostile SET v = 'hostile' WHERE id = 1")

    def instants():
        return {name.split(".")[0].split("_")[0] for name in os.listdir(f"{folder}/.hoodie/timeline")}

    def drop():
        spark.sql(f"CREATE DATABASE within LOCATION '{current.table_path}'")
        spark.sql("DROP DATABASE within")

    found = {}
    ways = OF_THE_TABLE | WAYS
    table_ways = [(way, by_option) for way in OF_THE_TABLE] + [(way, by_set) for way in BY_SET]
    for way, by in [*table_ways, *((way, by_option) for way in WAYS), ("bare", by_set), ("strategy", by_set)]:
        name = f"{way} by {'option' if by is by_option else 'SET'}"
        found[name] = outcome(lambda by=by, way=way: by(ways[way])) | {
            "timeline": sorted(instants()),
            "option": next(iter(ways[way])),
        }
        found[name]["ofTheTable"] = way in OF_THE_TABLE
        print(f"HOSTILE {name}: {json.dumps(found[name])}", flush=True)
        for key in ways[way]:
            spark.conf.unset(key)
    found["database"] = outcome(drop) | {"timeline": sorted(instants()), "option": "", "ofTheTable": False}
    with open(results, "w", encoding="utf-8") as file:
        json.dump(found, file)


main(*sys.argv[1:])
